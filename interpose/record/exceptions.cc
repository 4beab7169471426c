// SPDX-License-Identifier: Apache-2.0
#include "interpose/record/exceptions.h"

#include <stdint.h>

namespace rollcall {

__thread OpenCall* open_call;
alignas(OpenCall) __thread char open_call_room[kOpenCallBytes];
alignas(InnerCall) __thread char inner_call_room[kInnerCallBytes];

OpenCall* PlainCall() {
  auto* call = OpenCallRoom<OpenCall>();
  call->thrown = [](OpenCall*) {};
  return call;
}

void EndOpenCall() {
  OpenCall* call = open_call;
  if (call == nullptr) return;
  open_call = OuterOf(call);
  ThreadState* thread = &this_thread;
  const bool has_ended = open_call == nullptr && thread->blocked != nullptr;
  if (has_ended) thread->blocked->since.store(0, std::memory_order_release);
  call->thrown(call);
  thread->inside = open_call != nullptr || thread->locked_in;
}

namespace {

// Of the C++ ABI (unwind.h, which belongs to the compiler's runtime).
constexpr int kCleanupPhase = 2;
constexpr int kContinueUnwind = 8;

}  // namespace

// Also called for a thread that is cancelled or exits.
extern "C" __attribute__((visibility("hidden"))) int rollcall_ends_by_exception(int, int actions,
                                                                                uint64_t, void*,
                                                                                void*) {
  if ((actions & kCleanupPhase) != 0) EndOpenCall();
  return kContinueUnwind;
}

}  // namespace rollcall
