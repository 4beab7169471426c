// SPDX-License-Identifier: Apache-2.0
// The compilation units of a file, where libdwfl does not find them by itself. Only .cc files
// include this: it needs the headers of elfutils.
#pragma once

#include <elfutils/libdwfl.h>

#include <vector>

#include "agent/symbols/elf_file.h"

namespace rollcall {

// Finds the unit of an address by the ranges in the units themselves. For files without the table
// that libdwfl searches (.debug_aranges).
class UnitIndex {
 public:
  // Reads the ranges of all units. `module` must outlive this object.
  explicit UnitIndex(Dwfl_Module* module);

  // Returns the unit of `address`, in libdwfl's addresses, and sets `*bias` to their offset over
  // the unit's. nullptr if no unit has it.
  Dwarf_Die* Find(Dwarf_Addr address, Dwarf_Addr* bias);

 private:
  struct Range {
    Dwarf_Addr begin = 0;  // in libdwfl's addresses
    Dwarf_Addr end = 0;
    Dwarf_Addr bias = 0;
    Dwarf_Die* unit = nullptr;  // the module owns it
  };
  std::vector<Range> ranges_;  // by begin
};

// Finds the contents of a unit that the compiler split off into a .dwo file (-gsplit-dwarf). False
// if the unit is whole, or there is no .dwo file. libdw opens the .dwo file by names that `file`
// contains, which may lead to a pipe or a device. So this function follows only names that trusted
// users alone decide, in the agent's file system (trusted_path.h).
bool FindSplitUnit(Dwarf_Die* unit, const ElfFile& file, Dwarf_Die* split);

// Whether libdw may follow the link of the debug information to information that several files
// share
// (.gnu_debugaltlink, made by dwz): it opens whatever that link names. It may if there is none, or
// if trusted users alone can have written the file with the link: `debug_file`, or `file` if that
// is null.
bool MayFollowAlternative(Dwarf* dwarf, const char* debug_file, const ElfFile& file);

}  // namespace rollcall
