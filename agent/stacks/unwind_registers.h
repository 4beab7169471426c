// SPDX-License-Identifier: Apache-2.0
// A thread's registers under libunwind's numbers. Only the unwinder's own files include it, because
// it needs libunwind's headers.
#pragma once

#include <libunwind.h>

#include <optional>

#include "agent/processes/stack_sample.h"

namespace rollcall {

// On aarch64 UNW_REG_IP is the link register: right for callers, wrong for an interrupted frame.
#if defined(__x86_64__)
inline constexpr int kInstructionRegister = UNW_X86_64_RIP;
inline constexpr int kFramePointerRegister = UNW_X86_64_RBP;
#else
inline constexpr int kInstructionRegister = UNW_AARCH64_PC;
inline constexpr int kFramePointerRegister = UNW_AARCH64_X29;
#endif

class UnwindRegisters {
 public:
  explicit UnwindRegisters(const RawThread& thread)
      : registers_(thread.registers),
        only_frame_(thread.how == HowTaken::kWatched),
        has_frame_pointer_(!only_frame_) {}

  // False if the register does not exist, or its value is not known.
  bool Get(int number, unw_word_t* value) const {
    const auto* field = Field(number);
    if (field == nullptr || (only_frame_ && !IsFrameRegister(number))) return false;
    if (number == kFramePointerRegister && !has_frame_pointer_) return false;
    *value = *field;
    return true;
  }

  // From here on only these registers are valid.
  void SetFrame(uint64_t ip, uint64_t sp, std::optional<uint64_t> fp) {
    only_frame_ = true;
    Move(ip, sp, fp);
  }

  // Changes these registers; the others stay valid.
  void Move(uint64_t ip, uint64_t sp, std::optional<uint64_t> fp) {
    *Field(kInstructionRegister) = ip;
    *Field(UNW_REG_IP) = ip;
    *Field(UNW_REG_SP) = sp;
    *Field(kFramePointerRegister) = fp.value_or(0);
    has_frame_pointer_ = fp.has_value();
  }

  // Sets all registers: those of interrupted code.
  void SetAll(const ThreadRegisters& registers) {
    registers_ = registers;
    only_frame_ = false;
    has_frame_pointer_ = true;
  }

 private:
  using Value = decltype(ThreadRegisters{}.
#if defined(__x86_64__)
                         rip
#else
                         pc
#endif
  );

  static bool IsFrameRegister(int number) {
    return number == kInstructionRegister || number == UNW_REG_IP || number == UNW_REG_SP ||
           number == kFramePointerRegister;
  }

  const Value* Field(int number) const { return const_cast<UnwindRegisters*>(this)->Field(number); }

  Value* Field(int number) {
#if defined(__x86_64__)
    switch (number) {
      case UNW_X86_64_RAX:
        return &registers_.rax;
      case UNW_X86_64_RDX:
        return &registers_.rdx;
      case UNW_X86_64_RCX:
        return &registers_.rcx;
      case UNW_X86_64_RBX:
        return &registers_.rbx;
      case UNW_X86_64_RSI:
        return &registers_.rsi;
      case UNW_X86_64_RDI:
        return &registers_.rdi;
      case UNW_X86_64_RBP:
        return &registers_.rbp;
      case UNW_X86_64_RSP:
        return &registers_.rsp;
      case UNW_X86_64_R8:
        return &registers_.r8;
      case UNW_X86_64_R9:
        return &registers_.r9;
      case UNW_X86_64_R10:
        return &registers_.r10;
      case UNW_X86_64_R11:
        return &registers_.r11;
      case UNW_X86_64_R12:
        return &registers_.r12;
      case UNW_X86_64_R13:
        return &registers_.r13;
      case UNW_X86_64_R14:
        return &registers_.r14;
      case UNW_X86_64_R15:
        return &registers_.r15;
      case UNW_X86_64_RIP:
        return &registers_.rip;
      default:
        return nullptr;
    }
#else
    if (number >= UNW_AARCH64_X0 && number <= UNW_AARCH64_X30) {
      return &registers_.regs[number - UNW_AARCH64_X0];
    }
    if (number == UNW_AARCH64_SP) return &registers_.sp;
    if (number == UNW_AARCH64_PC) return &registers_.pc;
    return nullptr;
#endif
  }

  ThreadRegisters registers_;
  bool only_frame_;  // the instruction, stack and frame registers
  bool has_frame_pointer_;
};

}  // namespace rollcall
