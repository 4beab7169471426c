// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/signal_context.h"

#include <signal.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "agent/stacks/word.h"

namespace rollcall {
namespace {

constexpr size_t kAltStackOffset = offsetof(ucontext_t, uc_stack);
constexpr size_t kMachineOffset = offsetof(ucontext_t, uc_mcontext);

#if defined(__x86_64__)

constexpr uint64_t kContextFromTrampoline = 0;
constexpr uint64_t kUserCodeSegment = 0x33;

struct SavedRegister {
  int index;
  unsigned long long ThreadRegisters::* field;
};

constexpr SavedRegister kSaved[] = {
    {REG_R8, &ThreadRegisters::r8},   {REG_R9, &ThreadRegisters::r9},
    {REG_R10, &ThreadRegisters::r10}, {REG_R11, &ThreadRegisters::r11},
    {REG_R12, &ThreadRegisters::r12}, {REG_R13, &ThreadRegisters::r13},
    {REG_R14, &ThreadRegisters::r14}, {REG_R15, &ThreadRegisters::r15},
    {REG_RDI, &ThreadRegisters::rdi}, {REG_RSI, &ThreadRegisters::rsi},
    {REG_RBP, &ThreadRegisters::rbp}, {REG_RBX, &ThreadRegisters::rbx},
    {REG_RDX, &ThreadRegisters::rdx}, {REG_RAX, &ThreadRegisters::rax},
    {REG_RCX, &ThreadRegisters::rcx}, {REG_RSP, &ThreadRegisters::rsp},
    {REG_RIP, &ThreadRegisters::rip},
};

constexpr size_t RegisterOffset(int index) {
  return kMachineOffset + offsetof(mcontext_t, gregs) + static_cast<size_t>(index) * kWordBytes;
}

constexpr size_t kStackPointerOffset = RegisterOffset(REG_RSP);
// The last word that the search looks at.
constexpr size_t kMarkOffset = RegisterOffset(REG_CSGSFS);

bool IsMark(uint64_t word) { return (word & 0xffff) == kUserCodeSegment; }

#else

constexpr uint64_t kContextFromTrampoline = sizeof(siginfo_t);
constexpr size_t kStackPointerOffset = kMachineOffset + offsetof(mcontext_t, sp);
constexpr size_t kMarkOffset = kMachineOffset + offsetof(mcontext_t, pstate);

// User mode, of 64 bits.
bool IsMark(uint64_t word) { return (word & 0x1f) == 0; }

#endif

uint64_t WordAt(const uint8_t* bytes) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

}  // namespace

bool ReadInterruptedRegisters(uint64_t stack_pointer,
                              const std::function<bool(uint64_t address, uint64_t* word)>& read,
                              ThreadRegisters* registers) {
  const uint64_t context = stack_pointer + kContextFromTrampoline;
  uint64_t word = 0;
#if defined(__x86_64__)
  for (const SavedRegister& saved : kSaved) {
    if (!read(context + RegisterOffset(saved.index), &word)) return false;
    registers->*saved.field = word;
  }
#else
  const uint64_t machine = context + kMachineOffset;
  for (size_t i = 0; i < sizeof(registers->regs) / kWordBytes; ++i) {
    if (!read(machine + offsetof(mcontext_t, regs) + i * kWordBytes, &word)) return false;
    registers->regs[i] = word;
  }
  if (!read(machine + offsetof(mcontext_t, sp), &word)) return false;
  registers->sp = word;
  if (!read(machine + offsetof(mcontext_t, pc), &word)) return false;
  registers->pc = word;
#endif
  return true;
}

InterruptedStack FindInterruptedStack(const uint8_t* copy, size_t size, uint64_t base) {
  for (size_t at = 0; at + kMarkOffset + kWordBytes <= size; at += kWordBytes) {
    if (!IsMark(WordAt(copy + at + kMarkOffset))) continue;
    const uint64_t begin = WordAt(copy + at + kAltStackOffset + offsetof(stack_t, ss_sp));
    const uint64_t bytes = WordAt(copy + at + kAltStackOffset + offsetof(stack_t, ss_size));
    const uint64_t context = base + at;
    // The stack for signals, which the kernel saves too, is the one that the frame lies on.
    if (context < begin || context - begin >= bytes) continue;
    const uint64_t stack = WordAt(copy + at + kStackPointerOffset);
    if (stack >= base && stack - base < size) continue;
    const uint64_t left = bytes - (context - begin);  // of the handler's stack, as the job reports
    return {stack, at + static_cast<size_t>(std::min<uint64_t>(left, SIZE_MAX - at))};
  }
  return {};
}

}  // namespace rollcall
