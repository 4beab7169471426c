// SPDX-License-Identifier: Apache-2.0
// One ELF file, opened with libdwfl. Only .cc files include this: it needs the headers of elfutils.
#pragma once

#include <elfutils/libdwfl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

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

  // Returns the table of .debug_frame, which this object owns, and sets `*in_table` to `address` in
  // the table's addresses. nullptr: the file has no such table.
  Dwarf_CFI* DebugFrameTable(uint64_t address, Dwarf_Addr* in_table);

 private:
  std::vector<SymbolName> ResolveInlined(Dwarf_Addr address);

  std::shared_ptr<ElfFile> file_;
  Dwfl* session_ = nullptr;
  Dwfl_Module* module_ = nullptr;
  Dwarf_Addr bias_ = 0;  // offset of libdwfl's addresses over the file's
};

}  // namespace rollcall
