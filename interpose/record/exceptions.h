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
//
// A program may also leave a call by longjmp(), of which nobody tells us. So what is open lies in
// thread-local storage, never on the stack, where the program's own data would lie by then. The
// next call whose frame lies above that of the open one ends the open one, as an exception does.
#pragma once

#include <stddef.h>

#include "interpose/thread_state.h"

namespace rollcall {

// A call that this thread is in and that may throw. It lies in the thread's room for it.
struct OpenCall {
  void (*thrown)(OpenCall* call);  // records that the call threw
  const void* frame;               // of the wrapper that is in the call
};
extern __thread OpenCall* open_call;  // nullptr: none

// A thread has one at a time, of any family.
inline constexpr size_t kOpenCallBytes = 72;
alignas(OpenCall) extern __thread char open_call_room[kOpenCallBytes];
template <typename Call>
Call* OpenCallRoom() {
  static_assert(sizeof(Call) <= kOpenCallBytes && alignof(Call) <= alignof(OpenCall));
  return reinterpret_cast<Call*>(open_call_room);
}

// Keeps `call` as the thread's open call for the time of a scope that is left in good order.
class MayThrow {
 public:
  explicit MayThrow(OpenCall* call) {
    call->frame = this;
    open_call = call;
  }
  ~MayThrow() {
    if (IsOpen()) open_call = nullptr;
  }
  // False: another call has taken the room. So it is in the child of a fork from inside the call,
  // and in a signal handler on a stack of its own, whose calls cannot tell that this one goes on.
  bool IsOpen() const { return open_call != nullptr && open_call->frame == this; }
  MayThrow(const MayThrow&) = delete;
  MayThrow& operator=(const MayThrow&) = delete;
};

// For a call of which only the thread's own state is to be reset.
void ForgetThrown(OpenCall* call);

// As the destructors at the end of the wrapper would do.
void EndOpenCall();

// Whether this thread is inside a wrapped call. For wrappers, at their start: the frames of what
// this thread is still inside of lie above theirs.
__attribute__((always_inline)) inline bool IsInsideCall() {
  const OpenCall* call = open_call;
  if (call != nullptr && call->frame < __builtin_frame_address(0)) EndOpenCall();
  return this_thread.inside;
}

// 0x1b: the routine's address is relative, in 4 bytes (DW_EH_PE_pcrel | DW_EH_PE_sdata4).
#define ROLLCALL_ENDS_BY_EXCEPTION() \
  __asm__ volatile(".cfi_personality 0x1b, rollcall_ends_by_exception")

}  // namespace rollcall
