// SPDX-License-Identifier: Apache-2.0
// The wrappers of MPI's waits for nonblocking collectives, and of its messages. Of a message the
// library records only that a thread is inside the call.
#include "interpose/calls/mpi_requests.h"
#include "interpose/real.h"
#include "interpose/record/blocked_threads.h"
#include "interpose/recorder.h"

namespace rollcall {
namespace {

// The entries of a wait's further communicators. Frees them when the call returns.
class AlsoBlocked {
 public:
  AlsoBlocked() = default;
  ~AlsoBlocked() {
    for (int i = 0; i < count_; ++i) {
      entries_[i]->since.store(0, std::memory_order_relaxed);
      entries_[i]->tid.store(0, std::memory_order_release);
    }
  }
  AlsoBlocked(const AlsoBlocked&) = delete;
  AlsoBlocked& operator=(const AlsoBlocked&) = delete;

  void Add(uint32_t thread, Op op, const AwaitedCall& call, uint64_t since) {
    segment::BlockedEntry* entry = FreeEntry(thread);
    if (entry == nullptr) return;
    entry->op.store(static_cast<uint32_t>(op), std::memory_order_relaxed);
    entry->comm.store(call.comm->index, std::memory_order_relaxed);
    entry->stream.store(call.number, std::memory_order_relaxed);
    entry->since.store(since, std::memory_order_release);
    entries_[count_++] = entry;
  }

 private:
  static segment::BlockedEntry* FreeEntry(uint32_t thread) {
    for (uint32_t i = 0; i < segment::kBlockedCapacity; ++i) {
      uint32_t owner = 0;
      if (recorder.blocked[i].tid.compare_exchange_strong(owner, thread)) {
        return &recorder.blocked[i];
      }
    }
    return nullptr;
  }

  segment::BlockedEntry* entries_[kAwaited];
  int count_ = 0;
};

enum class Until { kAllDone, kAnyDone };

// Records a wait for requests. A wait for any of several requests counts as a wait for a collective
// only if every request is a collective's: a message may end the wait, and a server may wait long
// for its next message.
template <typename Function, typename... Args>
int ObserveMpiWait(Function* real, Op op, Until until, int count, const MpiWord* requests,
                   Args... args) {
  if (real == nullptr) return kMpiFailed;
  ThreadState* thread = &this_thread;
  if (thread->inside || !Recording()) return real(args...);
  const InsideCall inside(thread);
  ClaimedEntry(thread);
  const WatchedRequests watched(thread, count, requests);
  AwaitedCall calls[kAwaited] = {};
  const bool counts = until == Until::kAllDone || !watched.others();
  const int awaited = counts ? watched.Awaited(calls) : 0;
  const uint64_t now = Now();
  AlsoBlocked also;
  for (int i = 1; i < awaited; ++i) also.Add(thread->thread_id, op, calls[i], now);
  const Blocked blocked(thread, op, calls[0].comm, reinterpret_cast<const void*>(calls[0].number),
                        now);
  return real(args...);
}

// Records a call that does not wait, but may complete requests.
template <typename Function, typename... Args>
int ObserveMpiTest(Function* real, int count, const MpiWord* requests, Args... args) {
  if (real == nullptr) return kMpiFailed;
  ThreadState* thread = &this_thread;
  if (thread->inside || !AnyOpenRequest()) return real(args...);
  const InsideCall inside(thread);
  ClaimedEntry(thread);
  const WatchedRequests watched(thread, count, requests);
  return real(args...);
}

// Records a message call. Before recording starts it costs one load.
template <typename Function, typename... Args>
int ObserveMpiMessage(Function* real, Op op, Args... args) {
  if (real == nullptr) return kMpiFailed;
  ThreadState* thread = &this_thread;
  if (thread->inside || !Recording()) return real(args...);
  const InsideCall inside(thread);
  const Blocked blocked(thread, op, nullptr, nullptr, Now());
  return real(args...);
}

}  // namespace
}  // namespace rollcall

using rollcall::ObserveMpiMessage;
using rollcall::ObserveMpiTest;
using rollcall::ObserveMpiWait;
using rollcall::Op;
using rollcall::Until;

#define EXPORT extern "C" ROLLCALL_EXPORT

EXPORT int MPI_Wait(MpiWord* request, void* status) {
  return ObserveMpiWait(ROLLCALL_REAL(MPI_Wait), Op::kMPI_Wait, Until::kAllDone, 1, request,
                        request, status);
}

EXPORT int MPI_Waitall(int count, MpiWord* requests, void* statuses) {
  return ObserveMpiWait(ROLLCALL_REAL(MPI_Waitall), Op::kMPI_Waitall, Until::kAllDone, count,
                        requests, count, requests, statuses);
}

EXPORT int MPI_Waitany(int count, MpiWord* requests, int* index, void* status) {
  return ObserveMpiWait(ROLLCALL_REAL(MPI_Waitany), Op::kMPI_Waitany, Until::kAnyDone, count,
                        requests, count, requests, index, status);
}

EXPORT int MPI_Waitsome(int count, MpiWord* requests, int* done, int* indices, void* statuses) {
  return ObserveMpiWait(ROLLCALL_REAL(MPI_Waitsome), Op::kMPI_Waitsome, Until::kAnyDone, count,
                        requests, count, requests, done, indices, statuses);
}

EXPORT int MPI_Test(MpiWord* request, int* flag, void* status) {
  return ObserveMpiTest(ROLLCALL_REAL(MPI_Test), 1, request, request, flag, status);
}

EXPORT int MPI_Testall(int count, MpiWord* requests, int* flag, void* statuses) {
  return ObserveMpiTest(ROLLCALL_REAL(MPI_Testall), count, requests, count, requests, flag,
                        statuses);
}

EXPORT int MPI_Testany(int count, MpiWord* requests, int* index, int* flag, void* status) {
  return ObserveMpiTest(ROLLCALL_REAL(MPI_Testany), count, requests, count, requests, index, flag,
                        status);
}

EXPORT int MPI_Testsome(int count, MpiWord* requests, int* done, int* indices, void* statuses) {
  return ObserveMpiTest(ROLLCALL_REAL(MPI_Testsome), count, requests, count, requests, done,
                        indices, statuses);
}

// MPI does not report when a freed request is done, so the request counts as done.
EXPORT int MPI_Request_free(MpiWord* request) {
  return ObserveMpiTest(ROLLCALL_REAL(MPI_Request_free), 1, request, request);
}

EXPORT int MPI_Send(const void* buffer, int count, MpiWord type, int to, int tag, MpiWord comm) {
  return ObserveMpiMessage(ROLLCALL_REAL(MPI_Send), Op::kMPI_Send, buffer, count, type, to, tag,
                           comm);
}

EXPORT int MPI_Ssend(const void* buffer, int count, MpiWord type, int to, int tag, MpiWord comm) {
  return ObserveMpiMessage(ROLLCALL_REAL(MPI_Ssend), Op::kMPI_Ssend, buffer, count, type, to, tag,
                           comm);
}

EXPORT int MPI_Recv(void* buffer, int count, MpiWord type, int from, int tag, MpiWord comm,
                    void* status) {
  return ObserveMpiMessage(ROLLCALL_REAL(MPI_Recv), Op::kMPI_Recv, buffer, count, type, from, tag,
                           comm, status);
}

EXPORT int MPI_Sendrecv(const void* send, int send_count, MpiWord send_type, int to, int send_tag,
                        void* recv, int recv_count, MpiWord recv_type, int from, int recv_tag,
                        MpiWord comm, void* status) {
  return ObserveMpiMessage(ROLLCALL_REAL(MPI_Sendrecv), Op::kMPI_Sendrecv, send, send_count,
                           send_type, to, send_tag, recv, recv_count, recv_type, from, recv_tag,
                           comm, status);
}

EXPORT int MPI_Probe(int from, int tag, MpiWord comm, void* status) {
  return ObserveMpiMessage(ROLLCALL_REAL(MPI_Probe), Op::kMPI_Probe, from, tag, comm, status);
}
