// SPDX-License-Identifier: Apache-2.0
// The wrappers of the ends of gloo's works, which run on threads of the group, and of the program's
// waits for works (c10d::Work).
#include "interpose/calls/mpi_requests.h"
#include "interpose/keep_errno.h"
#include "interpose/real.h"
#include "interpose/record/blocked_threads.h"
#include "interpose/record/exceptions.h"
#include "interpose/recorder.h"

namespace rollcall {
namespace {

using Wait = bool (*)(void* work, int64_t timeout);

__attribute__((noinline, noclone)) bool RecordWait(Wait real, const AwaitedCall& call, void* work,
                                                   int64_t timeout) {
  ROLLCALL_ENDS_BY_EXCEPTION();
  ThreadState* thread = &this_thread;
  const InsideCall inside(thread);
  const Blocked blocked(thread, Op::kwait, call.comm, reinterpret_cast<const void*>(call.number),
                        Now());
  const MayThrow may_throw(PlainCall());
  return real(work, timeout);
}

// Called before the real function wakes those who wait for the work.
void Finish(void* work) { FinishWork(reinterpret_cast<uintptr_t>(work)); }

}  // namespace
}  // namespace rollcall

#define EXPORT extern "C" ROLLCALL_EXPORT

EXPORT bool _ZN4c10d4Work4waitENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE(void* work,
                                                                            int64_t timeout) {
  const auto real = ROLLCALL_REAL(_ZN4c10d4Work4waitENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE);
  rollcall::AwaitedCall call = {};
  const bool is_open = !rollcall::IsInsideCall() && rollcall::Recording() &&
                       rollcall::FindWork(reinterpret_cast<uintptr_t>(work), &call);
  return is_open ? rollcall::RecordWait(real, call, work, timeout) : real(work, timeout);
}

EXPORT void _ZN4c10d16ProcessGroupGloo9AsyncWork14finishWorkGlooEv(void* work) {
  rollcall::Finish(work);
  ROLLCALL_REAL(_ZN4c10d16ProcessGroupGloo9AsyncWork14finishWorkGlooEv)(work);
}

EXPORT void
_ZN4c10d16ProcessGroupGloo9AsyncWork19finishWorkGlooErrorERKNSt15__exception_ptr13exception_ptrE(
    void* work, const void* exception) {
  rollcall::Finish(work);
  ROLLCALL_REAL(
      _ZN4c10d16ProcessGroupGloo9AsyncWork19finishWorkGlooErrorERKNSt15__exception_ptr13exception_ptrE)(
      work, exception);
}
