// One ELF file opened with libdwfl. Included by symbolizer.cc alone, because it needs elfutils'
// headers.
#pragma once

#include <elfutils/libdwfl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "agent/elf_file.h"
#include "agent/symbolizer.h"

namespace rollcall {

class DwflModule {
 public:
  explicit DwflModule(std::shared_ptr<ElfFile> file);
  ~DwflModule();
  DwflModule(const DwflModule&) = delete;
  DwflModule& operator=(const DwflModule&) = delete;

  std::vector<SymbolName> Resolve(uint64_t address);

 private:
  std::vector<SymbolName> ResolveInlined(Dwarf_Addr address);

  std::shared_ptr<ElfFile> file_;
  Dwfl* session_ = nullptr;
  Dwfl_Module* module_ = nullptr;
  Dwarf_Addr bias_ = 0;  // of libdwfl's addresses over the file's
};

}  // namespace rollcall
