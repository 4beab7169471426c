// SPDX-License-Identifier: Apache-2.0
// The stack of one thread as return addresses, before they have names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rollcall {

struct UnwoundFrame {
  uint64_t address = 0;
  bool is_return_address = false;     // the call is the instruction before it
  bool is_signal_trampoline = false;  // the kernel's way into a signal handler
  uint64_t stack_pointer = 0;         // the native frame extends to the next frame's stack pointer
};

struct UnwoundStack {
  std::vector<UnwoundFrame> frames;  // innermost first
  std::string note;                  // why the stack is short or uncertain; empty if it is complete
};

}  // namespace rollcall
