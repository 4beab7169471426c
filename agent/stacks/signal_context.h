// SPDX-License-Identifier: Apache-2.0
// The registers that the kernel saves on the stack of a thread when it starts a signal handler.
//
// Reads copies of stacks, which may be damaged or hostile. Never allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "agent/processes/stack_sample.h"

namespace rollcall {

// Reads the registers of the interrupted code. `stack_pointer`: of the trampoline's frame. The
// handler returns to the trampoline. False if `read` has failed.
bool ReadInterruptedRegisters(uint64_t stack_pointer,
                              const std::function<bool(uint64_t address, uint64_t* word)>& read,
                              ThreadRegisters* registers);

// What a handler that runs on a stack of its own (sigaltstack) has interrupted.
struct InterruptedStack {
  uint64_t stack_pointer = 0;  // of the interrupted code; 0 if no code was interrupted
  size_t handler_bytes = 0;    // of the copy: the rest does not belong to the handler's stack
};

// Looks in a copy of a stack for the frame of such a handler. Finds none if the interrupted code
// ran on the copied stack as well. `base`: address of the copy.
InterruptedStack FindInterruptedStack(const uint8_t* copy, size_t size, uint64_t base);

}  // namespace rollcall
