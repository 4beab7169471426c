// SPDX-License-Identifier: Apache-2.0
// Facts about a stack frame from the machine code around its call. Pure: the functions decode bytes
// of code, which may be damaged or hostile, and read nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rollcall {

// The longest call instruction.
inline constexpr size_t kMaxCallBytes = 7;

enum class CallTarget {
  kNone,      // no call ends there
  kDirect,    // to a fixed address
  kIndirect,  // to an address in a register or in memory
};

struct CallInstruction {
  CallTarget kind = CallTarget::kNone;
  uint64_t target = 0;  // of a direct call
};

// Decodes the call that ends at `return_address`. `before`: the kMaxCallBytes bytes before it.
CallInstruction DecodeCall(uint64_t return_address, const uint8_t* before);

inline constexpr size_t kJumpBytes = 12;

// Whether `code` (kJumpBytes bytes) begins with a jump to an address in memory, as an entry of the
// procedure linkage table does.
bool IsJumpByPointer(const uint8_t* code);

// Returns the possible distances, in bytes, of the frame pointer above the stack pointer, after the
// function's prologue. `prologue`: the first bytes of the function. Empty if the function sets up
// no frame pointer.
std::vector<uint64_t> FramePointerDistances(const uint8_t* prologue, size_t size);

// Whether `code` has the bytes with which compilers fill the room between two functions.
bool HasFilling(const uint8_t* code, size_t size);

// Searches backwards for the first instruction of a function that sets up a frame pointer. `code`
// ends at the address `end`, which is in the function. Returns the number of bytes from the first
// instruction to `end`; 0 if not found.
size_t BytesSincePrologue(const uint8_t* code, size_t size, uint64_t end);

}  // namespace rollcall
