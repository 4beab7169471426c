// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/call_instructions.h"

#include <algorithm>
#include <cstring>

namespace rollcall {

#if defined(__x86_64__)
namespace {

constexpr uint8_t kCallRelative = 0xe8;
constexpr uint8_t kCallThrough = 0xff;                     // with 2 in the middle of the next byte
constexpr uint8_t kPrologue[] = {0x55, 0x48, 0x89, 0xe5};  // push %rbp; mov %rsp,%rbp
constexpr uint8_t kMoveStackToFrame[][3] = {{0x48, 0x89, 0xe5}, {0x48, 0x8b, 0xec}};
constexpr uint8_t kSubtractByte[] = {0x48, 0x83, 0xec};        // sub $imm8,%rsp
constexpr uint8_t kSubtractWord[] = {0x48, 0x81, 0xec};        // sub $imm32,%rsp
constexpr uint8_t kBranchTarget[] = {0xf3, 0x0f, 0x1e, 0xfa};  // endbr64
constexpr uint8_t kBoundPrefix = 0xf2;
constexpr uint8_t kJump[] = {0xff, 0x25};  // jmp *DISTANCE(%rip)
// The registers that a function saves beside the frame pointer.
constexpr int kSavedRegisters = 5;
constexpr uint64_t kFunctionAlignment = 16;
// Two of them in a row are not part of a function.
constexpr uint8_t kFilling = 0xcc;

template <size_t n>
bool Begins(const uint8_t* code, size_t size, const uint8_t (&with)[n]) {
  return size >= n && std::memcmp(code, with, n) == 0;
}

// Whether the operand of `call *OPERAND` is `size` bytes long. `code`: from its byte ModRM on.
bool IsOperand(const uint8_t* code, size_t size) {
  const int mode = code[0] >> 6;
  const int base = code[0] & 7;
  const bool has_index = mode != 3 && base == 4;
  if (has_index && size < 2) return false;
  const bool has_word =
      mode == 2 || (mode == 0 && base == 5) || (mode == 0 && has_index && (code[1] & 7) == 5);
  return size == size_t{1} + (has_index ? 1 : 0) + (mode == 1 ? 1 : 0) + (has_word ? 4 : 0);
}

// Returns the offset behind the instruction that sets the frame pointer, else `size`.
size_t SkipFrameSetUp(const uint8_t* code, size_t size) {
  for (size_t at = 0; at < size; ++at) {
    for (const auto& move : kMoveStackToFrame) {
      if (Begins(code + at, size - at, move)) return at + sizeof(move);
    }
  }
  return size;
}

// Returns the operands of all instructions that seem to lower the stack pointer. The bytes of
// another instruction may look like one of them.
std::vector<uint64_t> LoweredBy(const uint8_t* code, size_t size) {
  std::vector<uint64_t> found;
  for (size_t at = 0; at < size; ++at) {
    const uint8_t* const here = code + at;
    const size_t left = size - at;
    if (left > sizeof(kSubtractByte) && Begins(here, left, kSubtractByte) && here[3] < 0x80) {
      found.push_back(here[3]);
    }
    int32_t word = 0;
    if (left >= sizeof(kSubtractWord) + sizeof(word) && Begins(here, left, kSubtractWord)) {
      std::memcpy(&word, here + sizeof(kSubtractWord), sizeof(word));
      if (word > 0) found.push_back(static_cast<uint64_t>(word));
    }
  }
  return found;
}

}  // namespace

CallInstruction DecodeCall(uint64_t return_address, const uint8_t* before) {
  const uint8_t* const end = before + kMaxCallBytes;
  if (end[-5] == kCallRelative) {
    int32_t distance = 0;
    std::memcpy(&distance, end - sizeof(distance), sizeof(distance));
    return {CallTarget::kDirect, return_address + static_cast<uint64_t>(int64_t{distance})};
  }
  for (size_t size = 2; size <= kMaxCallBytes; ++size) {
    const uint8_t* const code = end - size;
    if (code[0] == kCallThrough && (code[1] >> 3 & 7) == 2 && IsOperand(code + 1, size - 1)) {
      return {CallTarget::kIndirect, 0};
    }
  }
  return {};
}

bool IsJumpByPointer(const uint8_t* code) {
  size_t at = Begins(code, kJumpBytes, kBranchTarget) ? sizeof(kBranchTarget) : 0;
  if (code[at] == kBoundPrefix) ++at;
  return Begins(code + at, kJumpBytes - at, kJump);
}

std::vector<uint64_t> FramePointerDistances(const uint8_t* prologue, size_t size) {
  const size_t at = SkipFrameSetUp(prologue, size);
  if (at == size) return {};
  std::vector<uint64_t> lowered = LoweredBy(prologue + at, size - at);
  if (lowered.empty()) lowered.push_back(0);
  std::vector<uint64_t> distances;
  for (const uint64_t bytes : lowered) {
    for (int saved = 0; saved <= kSavedRegisters; ++saved) {
      distances.push_back(bytes + sizeof(uint64_t) * static_cast<uint64_t>(saved));
    }
  }
  return distances;
}

bool HasFilling(const uint8_t* code, size_t size) {
  const auto is_filling = [](uint8_t a, uint8_t b) { return a == kFilling && b == kFilling; };
  return std::adjacent_find(code, code + size, is_filling) != code + size;
}

size_t BytesSincePrologue(const uint8_t* code, size_t size, uint64_t end) {
  size_t back = end % kFunctionAlignment;
  if (back < sizeof(kPrologue)) back += kFunctionAlignment;
  for (; back <= size; back += kFunctionAlignment) {
    const uint8_t* const at = code + size - back;
    if (HasFilling(at, std::min<size_t>(back, kFunctionAlignment + sizeof(kPrologue)))) return 0;
    if (Begins(at, back, kPrologue)) return back;
  }
  return 0;
}

#else
namespace {

constexpr size_t kInstructionBytes = 4;

uint32_t InstructionAt(const uint8_t* code) {
  uint32_t instruction = 0;
  std::memcpy(&instruction, code, sizeof(instruction));
  return instruction;
}

}  // namespace

CallInstruction DecodeCall(uint64_t return_address, const uint8_t* before) {
  const uint32_t code = InstructionAt(before + kMaxCallBytes - kInstructionBytes);
  if (code >> 26 == 0x25) {  // bl
    const int64_t words = static_cast<int32_t>(code << 6) >> 6;
    return {CallTarget::kDirect,
            return_address - kInstructionBytes + static_cast<uint64_t>(words * 4)};
  }
  if ((code & 0xfffffc1f) == 0xd63f0000) return {CallTarget::kIndirect, 0};  // blr
  return {};
}

// adrp x16, ...
bool IsJumpByPointer(const uint8_t* code) {
  return (InstructionAt(code) & 0x9f00001f) == 0x90000010;
}

// The record of a frame usually is at the bottom of the frame.
std::vector<uint64_t> FramePointerDistances(const uint8_t*, size_t) { return {0}; }

bool HasFilling(const uint8_t*, size_t) { return false; }

size_t BytesSincePrologue(const uint8_t*, size_t, uint64_t) { return 0; }

#endif

}  // namespace rollcall
