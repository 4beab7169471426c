// SPDX-License-Identifier: Apache-2.0
// The wrappers of the collectives of PyTorch's gloo groups (c10d::ProcessGroupGloo).
//
// A method checks its arguments, puts a work into a queue, and returns. Threads of the group, which
// are not the program's, run the works, perhaps in another order. So a call takes its position in
// the method, on the thread of the program, as a nonblocking collective of MPI does, and is done
// when its works are (calls_gloo_works.cc).
#include "interpose/calls/mpi_requests.h"
#include "interpose/calls/torch_objects.h"
#include "interpose/real.h"
#include "interpose/record/blocked_threads.h"
#include "interpose/record/call_record.h"
#include "interpose/record/exceptions.h"
#include "interpose/record/handle_table.h"

namespace rollcall {
namespace {

// The call that a thread is making.
struct GlooCall : OpenCall {
  LocalComm* comm;
  OpenRecord open;
  uint64_t position;
  uintptr_t work;  // the last one that it has put into a queue, or 0
  bool has_begun;  // other ranks may have seen it
};
GlooCall* OwnCall() { return OpenCallRoom<GlooCall>(); }

void EndCall(const GlooCall& call) {
  call.open.record->returned.store(Now(), std::memory_order_release);
  if (call.work == 0) {
    EndPosition(call.comm);
  } else {
    EndPositionOfWork(call.comm, call.work);
  }
}

// A call that threw before it put a work into a queue has not happened.
void EndThrown(OpenCall* open) {
  auto* call = static_cast<GlooCall*>(open);
  if (!call->has_begun) {
    call->open.record->result.store(ncclInvalidArgument, std::memory_order_relaxed);
    RevertPosition(call->comm, call->open);
  }
  EndCall(*call);
}

// The call that this thread is making, or nullptr.
GlooCall* CurrentCall() {
  OpenCall* call = open_call;
  return call == nullptr || call->thrown != &EndThrown ? nullptr : static_cast<GlooCall*>(call);
}

// Begins and ends the record of a call, around the real function.
class GlooRecord {
 public:
  GlooRecord(ThreadState* thread, LocalComm* comm, const CallInfo& info, const void* caller,
             bool has_begun)
      : inside_(thread),
        now_(Begin(thread, comm, info, caller, has_begun)),
        blocked_(thread, info.op, comm, reinterpret_cast<const void*>(OwnCall()->position + 1),
                 now_),
        may_throw_(OwnCall()) {}
  ~GlooRecord() {
    if (!may_throw_.IsOpen()) return;
    OwnCall()->open.record->result.store(ncclSuccess, std::memory_order_relaxed);
    EndCall(*OwnCall());
  }
  GlooRecord(const GlooRecord&) = delete;
  GlooRecord& operator=(const GlooRecord&) = delete;

 private:
  uint64_t Begin(ThreadState* thread, LocalComm* comm, const CallInfo& info, const void* caller,
                 bool has_begun) {
    ClaimedEntry(thread);
    const uint64_t now = Now();
    OwnCall()->thrown = &EndThrown;
    OwnCall()->comm = comm;
    OwnCall()->position = Get(comm->entry->entered);
    OwnCall()->work = 0;
    OwnCall()->has_begun = has_begun;
    BeginPosition(comm);
    OwnCall()->open = BeginRecord(thread, comm, info, now, caller, false);
    return now;
  }

  InsideCall inside_;
  uint64_t now_;
  Blocked blocked_;
  MayThrow may_throw_;
};

// The group's communicator; nullptr if it is not recorded, or the thread is inside another call.
__attribute__((always_inline)) inline LocalComm* FindGloo(const void* group) {
  return IsInsideCall() || !Recording() ? nullptr : FindComm(group);
}

CallInfo InfoOf(Op op, int32_t root, const TensorFacts& tensors) {
  return {op, tensors.dtype, kNoReduction, root, tensors.count, nullptr};
}

template <typename Function, typename... Args>
__attribute__((noinline, noclone)) TorchWork RecordGloo(Function* real, LocalComm* comm,
                                                        const CallInfo& info, const void* caller,
                                                        Args... args) {
  ROLLCALL_ENDS_BY_EXCEPTION();
  const GlooRecord record(&this_thread, comm, info, caller, false);
  return real(args...);
}

// A call that returns when it is done.
template <typename Function, typename... Args>
__attribute__((noinline, noclone)) void RecordBlockingGloo(Function* real, LocalComm* comm, Op op,
                                                           const void* caller, Args... args) {
  ROLLCALL_ENDS_BY_EXCEPTION();
  const GlooRecord record(&this_thread, comm, InfoOf(op, kNoPeer, NoTensors()), caller, true);
  real(args...);
}

}  // namespace
}  // namespace rollcall

using namespace rollcall;  // NOLINT(google-build-using-namespace): the rows use many names

#define EXPORT extern "C" ROLLCALL_EXPORT

#define COLLECTIVE(symbol, op, root, tensors, parameters, arguments)                             \
  EXPORT TorchWork symbol(parameters) {                                                          \
    const auto real = ROLLCALL_REAL(symbol);                                                     \
    LocalComm* comm = FindGloo(group);                                                           \
    if (comm == nullptr) return real(arguments);                                                 \
    return RecordGloo(real, comm, InfoOf(Op::k##op, root, tensors), __builtin_return_address(0), \
                      arguments);                                                                \
  }
#include "interpose/gloo_collectives.def"

EXPORT TorchWork _ZN4c10d16ProcessGroupGloo7barrierERKNS_14BarrierOptionsE(void* group,
                                                                           const void* options) {
  const auto real = ROLLCALL_REAL(_ZN4c10d16ProcessGroupGloo7barrierERKNS_14BarrierOptionsE);
  LocalComm* comm = FindGloo(group);
  if (comm == nullptr) return real(group, options);
  return RecordGloo(real, comm, InfoOf(Op::kBarrier, kNoPeer, NoTensors()),
                    __builtin_return_address(0), group, options);
}

EXPORT void _ZN4c10d16ProcessGroupGloo16monitoredBarrierERKNS_14BarrierOptionsEb(
    void* group, const void* options, bool wait_all_ranks) {
  const auto real =
      ROLLCALL_REAL(_ZN4c10d16ProcessGroupGloo16monitoredBarrierERKNS_14BarrierOptionsEb);
  LocalComm* comm = FindGloo(group);
  if (comm == nullptr) return real(group, options, wait_all_ranks);
  RecordBlockingGloo(real, comm, Op::kmonitored_barrier, __builtin_return_address(0), group,
                     options, wait_all_ranks);
}

// Puts a work of the thread's call into the queue. A call of several parts has several works.
EXPORT void
_ZN4c10d16ProcessGroupGloo7enqueueEN3c1013intrusive_ptrINS0_9AsyncWorkENS1_6detail34intrusive_target_default_null_typeIS3_EEEE(
    void* group, void* const* work) {
  GlooCall* call = CurrentCall();
  if (call != nullptr) {
    call->has_begun = true;
    call->work = reinterpret_cast<uintptr_t>(*work);
    RecordWork(call->comm, call->position, call->work);
  }
  ROLLCALL_REAL(
      _ZN4c10d16ProcessGroupGloo7enqueueEN3c1013intrusive_ptrINS0_9AsyncWorkENS1_6detail34intrusive_target_default_null_typeIS3_EEEE)(
      group, work);
}
