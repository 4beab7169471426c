// SPDX-License-Identifier: Apache-2.0
// Ends a record when the real function throws.
//
// PyTorch's functions throw, and so may an error handler that the program has given to MPI. The
// exception passes through the wrapper to the program. The library has no code of the C++ runtime,
// so no destructor of ours runs then. Instead a wrapper's frame has a personality routine of ours:
// the unwinder calls it while it removes the frame, it ends what the thread has open, and makes the
// unwinder go on. The exception is not touched.
//
// A function that calls the real function while a call is open contains
// ROLLCALL_ENDS_BY_EXCEPTION(), is not inlined into another one, and calls nothing else that
// throws.
//
// A program may also leave a call by longjmp(), which this library does not see. So what is open
// lies in thread-local storage, never on the stack, where the program's own data would lie by then.
// The next call whose frame lies above that of the open one ends the open one, as an exception
// does.
#pragma once

#include <stddef.h>

#include "interpose/thread_state.h"

namespace rollcall {

// A call that this thread is in and that may throw. It lies in the thread's room for it.
struct OpenCall {
  void (*thrown)(OpenCall* call);  // records that the call threw
  const void* frame;               // of the wrapper that is in the call
};
extern __thread OpenCall* open_call;  // nullptr if there is none

// A thread has one at a time, of any family.
inline constexpr size_t kOpenCallBytes = 72;
alignas(OpenCall) extern __thread char open_call_room[kOpenCallBytes];
template <typename Call>
Call* OpenCallRoom() {
  static_assert(sizeof(Call) <= kOpenCallBytes && alignof(Call) <= alignof(OpenCall));
  return reinterpret_cast<Call*>(open_call_room);
}

// A call that may be inside an open one, which goes on after it. It has a room of its own, so a
// thread has one of them at a time.
struct InnerCall : OpenCall {
  OpenCall* outer;  // nullptr if it is inside no other one
};
inline constexpr size_t kInnerCallBytes = 48;
alignas(InnerCall) extern __thread char inner_call_room[kInnerCallBytes];
template <typename Call>
Call* InnerCallRoom() {
  static_assert(sizeof(Call) <= kInnerCallBytes && alignof(Call) <= alignof(InnerCall));
  return reinterpret_cast<Call*>(inner_call_room);
}
inline bool IsInner(const OpenCall* call) {
  return reinterpret_cast<const char*>(call) == inner_call_room;
}
inline OpenCall* OuterOf(OpenCall* call) {
  return IsInner(call) ? static_cast<InnerCall*>(call)->outer : nullptr;
}

// Ends the thread's open call, as the destructors at the end of its wrapper would do.
void EndOpenCall();

// Ends what the program has left, by the address of a frame that this thread is in: the frames of
// what is still open lie above it.
inline void EndCallsBelow(const void* frame) {
  while (open_call != nullptr && open_call->frame < frame) EndOpenCall();
}

// Keeps `call` as the thread's open call for the time of a scope that is left in good order.
class MayThrow {
 public:
  explicit MayThrow(OpenCall* call) {
    call->frame = this;
    open_call = call;
  }
  ~MayThrow() {
    if (IsOpen()) open_call = OuterOf(open_call);
  }
  // False if another call has taken the room. So it is in the child of a fork from inside the call,
  // and in a signal handler on a stack of its own, whose calls do not show that this one goes on.
  bool IsOpen() const {
    EndCallsBelow(this);
    return open_call != nullptr && open_call->frame == this;
  }
  MayThrow(const MayThrow&) = delete;
  MayThrow& operator=(const MayThrow&) = delete;
};

// A call of which only the thread's own state is to be reset.
OpenCall* PlainCall();

// Whether this thread is inside a wrapped call. For wrappers, at their start: the frames of what
// this thread is still inside of lie above theirs.
__attribute__((always_inline)) inline bool IsInsideCall() {
  EndCallsBelow(__builtin_frame_address(0));
  return this_thread.inside;
}

// 0x1b: the routine's address is relative, in 4 bytes (DW_EH_PE_pcrel | DW_EH_PE_sdata4).
#define ROLLCALL_ENDS_BY_EXCEPTION() \
  __asm__ volatile(".cfi_personality 0x1b, rollcall_ends_by_exception")

}  // namespace rollcall
