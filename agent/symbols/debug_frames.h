// SPDX-License-Identifier: Apache-2.0
// Unwinds a function that has no .eh_frame, only the debugger's .debug_frame (in its file, or in
// the separate debug file of its build id): code that was built without exceptions' tables.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "agent/symbols/elf_file.h"

namespace rollcall {

class DwflModule;

// What is needed to go on from a frame. Others of the registers are lost on this way.
struct FrameRegisters {
  uint64_t instruction = 0;
  uint64_t stack = 0;
  uint64_t frame = 0;  // rbp, x29; 0: not known
};

class DebugFrames {
 public:
  using ReadWord = std::function<bool(uint64_t address, uint64_t* word)>;

  DebugFrames();
  ~DebugFrames();

  // The caller's registers. `address`: as the file numbers it, of the call. nullopt: the file has
  // no such information for it, or one that is more than a register and an offset.
  std::optional<FrameRegisters> Caller(const std::shared_ptr<ElfFile>& file, uint64_t address,
                                       const FrameRegisters& callee, const ReadWord& read);

 private:
  std::map<const ElfFile*, std::unique_ptr<DwflModule>> modules_;
};

}  // namespace rollcall
