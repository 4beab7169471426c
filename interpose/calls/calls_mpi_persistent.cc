// SPDX-License-Identifier: Apache-2.0
// The wrappers of MPI's persistent messages, and of the calls that start persistent requests.
#include "interpose/calls/mpi_persistent.h"
#include "interpose/real.h"
#include "interpose/record/blocked_threads.h"
#include "interpose/recorder.h"

namespace rollcall {
namespace {

// Records a call that describes a message, and starts none.
template <typename Call>
int ObserveMessageInit(MessageEnd end, int peer, int tag, MpiWord handle, const MpiWord* request,
                       Call call) {
  PersistentCall described;
  described.comm = FindMpiComm(&this_thread, handle);
  if (described.comm == nullptr) {
    NoteNested(this_thread, handle);
    return call();
  }
  described.is_message = true;
  described.end = end;
  described.peer = peer;
  described.tag = tag;
  return DescribePersistent(described, request, call);
}

template <typename Call>
__attribute__((noinline, noclone)) int RecordStart(int count, const MpiWord* requests,
                                                   const void* caller, const Call& call) {
  ROLLCALL_ENDS_BY_EXCEPTION();
  ThreadState* thread = &this_thread;
  const InsideCall inside(thread);
  ClaimedEntry(thread);
  for (int i = 0; i < count; ++i) StartPersistent(thread, HandleAt(requests, i), caller);
  const MayThrow may_throw(PlainCall());
  return call();
}

template <typename Call>
int ObserveStart(int count, const MpiWord* requests, const void* caller, Call call) {
  if (IsInsideCall() || !Recording() || !FindMpi()) return call();
  EndPolls(&this_thread);
  return RecordStart(count, requests, caller, call);
}

}  // namespace
}  // namespace rollcall

using rollcall::MessageEnd;
using rollcall::ObserveMessageInit;
using rollcall::ObserveStart;

#define EXPORT extern "C" ROLLCALL_EXPORT

#define MESSAGE_INIT(symbol, end, buffer_type, count_type)                                      \
  EXPORT int ROLLCALL_MPI(symbol)(buffer_type buffer, count_type count, MpiWord type, int peer, \
                                  int tag, MpiWord comm, MpiWord* request) {                    \
    const auto real = ROLLCALL_REAL_MPI(symbol);                                                \
    if (real == nullptr) return rollcall::kMpiFailed;                                           \
    return ObserveMessageInit(end, peer, tag, comm, request, [&] {                              \
      return real(buffer, count, type, peer, tag, comm, request);                               \
    });                                                                                         \
  }
MESSAGE_INIT(MPI_Send_init, MessageEnd::kSend, const void*, int)
MESSAGE_INIT(MPI_Ssend_init, MessageEnd::kSend, const void*, int)
MESSAGE_INIT(MPI_Bsend_init, MessageEnd::kSend, const void*, int)
MESSAGE_INIT(MPI_Rsend_init, MessageEnd::kSend, const void*, int)
MESSAGE_INIT(MPI_Recv_init, MessageEnd::kReceive, void*, int)
MESSAGE_INIT(MPI_Send_init_c, MessageEnd::kSend, const void*, int64_t)
MESSAGE_INIT(MPI_Ssend_init_c, MessageEnd::kSend, const void*, int64_t)
MESSAGE_INIT(MPI_Bsend_init_c, MessageEnd::kSend, const void*, int64_t)
MESSAGE_INIT(MPI_Rsend_init_c, MessageEnd::kSend, const void*, int64_t)
MESSAGE_INIT(MPI_Recv_init_c, MessageEnd::kReceive, void*, int64_t)

EXPORT int ROLLCALL_MPI(MPI_Start)(MpiWord* request) {
  const auto real = ROLLCALL_REAL_MPI(MPI_Start);
  if (real == nullptr) return rollcall::kMpiFailed;
  return ObserveStart(1, request, __builtin_return_address(0), [&] { return real(request); });
}

EXPORT int ROLLCALL_MPI(MPI_Startall)(int count, MpiWord* requests) {
  const auto real = ROLLCALL_REAL_MPI(MPI_Startall);
  if (real == nullptr) return rollcall::kMpiFailed;
  return ObserveStart(count, requests, __builtin_return_address(0),
                      [&] { return real(count, requests); });
}
