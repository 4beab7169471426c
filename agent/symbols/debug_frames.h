// SPDX-License-Identifier: Apache-2.0
// Unwinds a function by .debug_frame, from its file or from the separate debug file of its build
// id. For code that was built without exception tables, which has no .eh_frame. In a file without
// the search table .eh_frame_hdr, also by .eh_frame.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "agent/symbols/elf_file.h"

struct Dwarf_CFI_s;  // of elfutils, whose headers stay out of here

namespace rollcall {

class DwflModule;

// The registers that unwinding a frame needs. The values of all other registers are lost.
struct FrameRegisters {
  uint64_t instruction = 0;  // of a caller; 0 if the callee is the outermost frame
  uint64_t stack = 0;
  uint64_t frame = 0;  // rbp, x29; 0 if unknown
};

class DebugFrames {
 public:
  using ReadWord = std::function<bool(uint64_t address, uint64_t* word)>;

  DebugFrames();
  ~DebugFrames();

  // Returns the caller's registers. `address`: of the call, in the file's addresses. nullopt if the
  // file has no rule for the address, or the rule is more than a register and an offset.
  std::optional<FrameRegisters> Caller(const std::shared_ptr<ElfFile>& file, uint64_t address,
                                       const FrameRegisters& callee, const ReadWord& read);

 private:
  static std::optional<FrameRegisters> Step(Dwarf_CFI_s* cfi, uint64_t address,
                                            const FrameRegisters& callee, const ReadWord& read);

  std::map<const ElfFile*, std::unique_ptr<DwflModule>> modules_;
};

}  // namespace rollcall
