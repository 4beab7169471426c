// SPDX-License-Identifier: Apache-2.0
// The wrappers of MPI's collectives. The real functions are those of MPI's profiling interface
// (PMPI_X).
#include "interpose/calls/mpi_persistent.h"
#include "interpose/calls/mpi_requests.h"
#include "interpose/real.h"
#include "interpose/record/blocked_threads.h"
#include "interpose/record/call_record.h"

namespace rollcall {
namespace {

// Records a collective around the real function. `request` is that of a nonblocking collective,
// nullptr for a blocking one.
template <typename Function, typename... Args>
int ObserveMpi(Function* real, Op op, int32_t root, uint64_t bytes, const void* caller,
               MpiWord handle, const MpiWord* request, Args... args) {
  if (real == nullptr) return kMpiFailed;
  ThreadState* thread = &this_thread;
  LocalComm* comm = FindMpiComm(thread, handle);
  if (comm == nullptr) return real(args...);
  const InsideCall inside(thread);
  ClaimedEntry(thread);
  const uint64_t now = Now();
  const CallInfo info = {op, kNoDtype, kNoReduction, root, bytes, nullptr};
  BeginPosition(comm);
  const OpenRecord open = BeginRecord(thread, comm, info, now, caller, false);
  const uint64_t entered = Get(comm->entry->entered);
  const Blocked blocked(thread, op, comm, reinterpret_cast<const void*>(entered), now);
  const int result = real(args...);
  open.record->result.store(result == 0 ? ncclSuccess : ncclSystemError, std::memory_order_relaxed);
  open.record->returned.store(Now(), std::memory_order_release);
  if (result != 0) {
    RevertPosition(comm, open);
  } else if (request != nullptr) {
    RecordRequest(comm, entered - 1, HandleAt(request));
  }
  EndPosition(comm);
  return result;
}

// Records a call that describes a collective, which MPI_Start begins. It matches persistent ones
// only, and so has the name of the nonblocking twin.
template <typename Function, typename... Args>
int ObserveMpiInit(Function* real, Op op, int32_t root, uint64_t bytes, MpiWord handle,
                   const MpiWord* request, Args... args) {
  if (real == nullptr) return kMpiFailed;
  ThreadState* thread = &this_thread;
  LocalComm* comm = FindMpiComm(thread, handle);
  if (comm == nullptr) return real(args...);
  const InsideCall inside(thread);
  const int result = real(args...);
  if (result != 0) return result;
  PersistentCall described;
  described.comm = comm;
  described.op = op;
  described.peer = root;
  described.bytes = bytes;
  RecordPersistent(described, HandleAt(request));
  return result;
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
