// SPDX-License-Identifier: Apache-2.0
// One ELF file, opened with libdwfl. Only .cc files include this: it needs the headers of elfutils.
#pragma once

#include <elfutils/libdwfl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/symbols/dwarf_units.h"
#include "agent/symbols/elf_file.h"
#include "agent/symbols/symbol_name.h"

namespace rollcall {

class DwflModule {
 public:
  explicit DwflModule(std::shared_ptr<ElfFile> file);
  ~DwflModule();
  DwflModule(const DwflModule&) = delete;
  DwflModule& operator=(const DwflModule&) = delete;

  std::vector<SymbolName> Resolve(uint64_t address);

  // Return a table of unwind rules, .debug_frame or .eh_frame, which this object owns, and set
  // `*in_table` to `address` in the table's addresses. nullptr if the file has no such table.
  Dwarf_CFI* DebugFrameTable(uint64_t address, Dwarf_Addr* in_table);
  Dwarf_CFI* ExceptionTable(uint64_t address, Dwarf_Addr* in_table);

 private:
  std::vector<SymbolName> ResolveInlined(Dwarf_Addr address);
  Dwarf_Die* FindUnit(Dwarf_Addr address, Dwarf_Addr* bias);
  bool MayUseDwarf();  // whether it has some, and libdw follows no name that others chose

  std::shared_ptr<ElfFile> file_;
  Dwfl* session_ = nullptr;
  Dwfl_Module* module_ = nullptr;
  Dwarf_Addr bias_ = 0;  // offset of libdwfl's addresses over the file's
  std::optional<UnitIndex> units_;
  std::optional<bool> may_use_dwarf_;
};

}  // namespace rollcall
