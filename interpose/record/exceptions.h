// SPDX-License-Identifier: Apache-2.0
// Ends a record when the real function throws.
//
// PyTorch's functions throw, and the exception passes through the wrapper to the program. The
// library has no code of the C++ runtime, so no destructor of ours runs then. Instead a wrapper's
// frame has a personality routine of ours: the unwinder calls it while it removes the frame, it
// ends what the thread has open, and tells the unwinder to go on. The exception is not touched.
//
// A function that calls the real function while a call is open contains
// ROLLCALL_ENDS_BY_EXCEPTION(), is not inlined into another one, and calls nothing else that
// throws.
#pragma once

#include "interpose/thread_state.h"

namespace rollcall {

// A call that this thread is in and that may throw. It lies on the thread's stack.
struct OpenCall {
  void (*thrown)(OpenCall* call);  // records that the call threw
};
extern __thread OpenCall* open_call;  // nullptr: none

// Keeps `call` as the thread's open call for the time of a scope that is left in good order.
class MayThrow {
 public:
  explicit MayThrow(OpenCall* call) { open_call = call; }
  ~MayThrow() { open_call = nullptr; }
  MayThrow(const MayThrow&) = delete;
  MayThrow& operator=(const MayThrow&) = delete;
};

// For a call of which only the thread's own state is to be reset.
void ForgetThrown(OpenCall* call);

// 0x1b: the routine's address is relative, in 4 bytes (DW_EH_PE_pcrel | DW_EH_PE_sdata4).
#define ROLLCALL_ENDS_BY_EXCEPTION() \
  __asm__ volatile(".cfi_personality 0x1b, rollcall_ends_by_exception")

}  // namespace rollcall
