// SPDX-License-Identifier: Apache-2.0
// The wrappers of MPI's collectives. The real functions are those of MPI's profiling interface
// (PMPI_X).
#include "interpose/calls/mpi_persistent.h"
#include "interpose/calls/mpi_requests.h"
#include "interpose/real.h"
#include "interpose/record/blocked_threads.h"
#include "interpose/record/call_record.h"
#include "interpose/record/exceptions.h"

namespace rollcall {
namespace {

// The collective that a thread is in.
struct CollectiveCall : OpenCall {
  LocalComm* comm;
  OpenRecord open;
};

void EndCollective(const CollectiveCall& call, int result) {
  segment::RecordEntry* record = call.open.record;
  record->result.store(result == 0 ? ncclSuccess : ncclSystemError, std::memory_order_relaxed);
  record->returned.store(Now(), std::memory_order_release);
  if (result != 0) RevertPosition(call.comm, call.open);
  EndPosition(call.comm);
}

void EndLeftCollective(OpenCall* open) {
  EndCollective(*static_cast<CollectiveCall*>(open), kMpiFailed);
}

// `request` is that of a nonblocking collective, nullptr for a blocking one.
template <typename Call>
__attribute__((noinline, noclone)) int RecordCollective(LocalComm* comm, const CallInfo& info,
                                                        const void* caller, const MpiWord* request,
                                                        const Call& call) {
  ROLLCALL_ENDS_BY_EXCEPTION();
  ThreadState* thread = &this_thread;
  const InsideCall inside(thread);
  ClaimedEntry(thread);
  const uint64_t now = Now();
  auto* own = OpenCallRoom<CollectiveCall>();
  own->thrown = &EndLeftCollective;
  own->comm = comm;
  BeginPosition(comm);
  own->open = BeginRecord(thread, comm, info, now, caller, false);
  const uint64_t entered = Get(comm->entry->entered);
  const Blocked blocked(thread, info.op, comm, reinterpret_cast<const void*>(entered), now);
  const MayThrow may_throw(own);
  const int result = call();
  if (!may_throw.IsOpen()) return result;
  if (result == 0 && request != nullptr) {
    ForgetMessage(HandleAt(request));
    RecordRequest(comm, entered - 1, HandleAt(request));
  }
  EndCollective(*own, result);
  return result;
}

// Records a collective around the real function. `request`: as in RecordCollective().
template <typename Function, typename... Args>
int ObserveMpi(Function* real, Op op, int32_t root, uint64_t bytes, const void* caller,
               MpiWord handle, const MpiWord* request, Args... args) {
  if (real == nullptr) return kMpiFailed;
  LocalComm* comm = FindMpiComm(&this_thread, handle);
  if (comm == nullptr) return real(args...);
  const CallInfo info = {op, kNoDtype, kNoReduction, root, bytes, nullptr};
  return RecordCollective(comm, info, caller, request, [&] { return real(args...); });
}

// Records a call that describes a collective, which MPI_Start begins. It matches persistent ones
// only, and so has the name of the nonblocking twin.
template <typename Function, typename... Args>
int ObserveMpiInit(Function* real, Op op, int32_t root, uint64_t bytes, MpiWord handle,
                   const MpiWord* request, Args... args) {
  if (real == nullptr) return kMpiFailed;
  PersistentCall described;
  described.comm = FindMpiComm(&this_thread, handle);
  if (described.comm == nullptr) return real(args...);
  described.op = op;
  described.peer = root;
  described.bytes = bytes;
  return DescribePersistent(described, request, [&] { return real(args...); });
}

}  // namespace
}  // namespace rollcall

using rollcall::kNoPeer;
using rollcall::MessageBytes;
using rollcall::ObserveMpi;
using rollcall::ObserveMpiInit;
using rollcall::Op;

#define COLLECTIVE(symbol, twin, root, bytes, parameters, arguments)                              \
  extern "C" ROLLCALL_EXPORT int ROLLCALL_MPI(FORM(symbol))(parameters) {                         \
    return ObserveMpi(ROLLCALL_REAL_MPI(FORM(symbol)), Op::k##symbol, root, bytes,                \
                      __builtin_return_address(0), comm, nullptr, arguments);                     \
  }                                                                                               \
  extern "C" ROLLCALL_EXPORT int ROLLCALL_MPI(FORM(twin))(parameters, MpiWord * request) {        \
    return ObserveMpi(ROLLCALL_REAL_MPI(FORM(twin)), Op::k##twin, root, bytes,                    \
                      __builtin_return_address(0), comm, request, arguments, request);            \
  }                                                                                               \
  extern "C" ROLLCALL_EXPORT int ROLLCALL_MPI(FORM(symbol##_init))(parameters, MpiWord info,      \
                                                                   MpiWord * request) {           \
    return ObserveMpiInit(ROLLCALL_REAL_MPI(FORM(symbol##_init)), Op::k##twin, root, bytes, comm, \
                          request, arguments, info, request);                                     \
  }
#include "interpose/mpi_collectives.def"
#define COUNT int64_t
#define FORM(symbol) symbol##_c
#include "interpose/mpi_collectives.def"
#undef COLLECTIVE
