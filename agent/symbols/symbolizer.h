// SPDX-License-Identifier: Apache-2.0
// Finds the function, source file and line of addresses, with elfutils' libdwfl.
//
// Reads only local files (libdwfl by itself may send requests to a debuginfod server). Finds
// separate debug files by build id below /usr/lib/debug. An address without a symbol has no name;
// the caller still has module and offset. Keeps files open and caches names across threads and
// processes. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "agent/processes/stack_sample.h"
#include "agent/symbols/elf_file.h"
#include "agent/symbols/symbol_name.h"

namespace rollcall {

class Symbolizer {
 public:
  Symbolizer();
  ~Symbolizer();
  Symbolizer(const Symbolizer&) = delete;
  Symbolizer& operator=(const Symbolizer&) = delete;

  // Returns the function at `address` (in the file's addresses), preceded by the calls inlined
  // there, innermost first. Never empty. The reference is valid until the next call.
  const std::vector<SymbolName>& Resolve(const std::shared_ptr<ElfFile>& file, uint64_t address);

 private:
  class Cache;
  std::unique_ptr<Cache> cache_;
};

}  // namespace rollcall
