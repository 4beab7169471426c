// SPDX-License-Identifier: Apache-2.0
// Names for addresses: function, source file and line, with elfutils' libdwfl on the mapped files.
//
// Reads files only, and nothing over the network (libdwfl by itself may ask a debuginfod server).
// Separate debug files are found by build id below /usr/lib/debug. What has no name gets none: the
// caller still has module and offset. Files are kept open and names are cached, across threads and
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

  // The function at `address` (as the file numbers it), preceded by the calls inlined there,
  // innermost first. Never empty. The reference is good until the next call.
  const std::vector<SymbolName>& Resolve(const std::shared_ptr<ElfFile>& file, uint64_t address);

 private:
  class Cache;
  std::unique_ptr<Cache> cache_;
};

}  // namespace rollcall
