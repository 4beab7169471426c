// SPDX-License-Identifier: Apache-2.0
// The wrappers of MPI's waits for requests: of nonblocking collectives, and of messages.
#include "interpose/calls/mpi_messages.h"
#include "interpose/calls/mpi_persistent.h"
#include "interpose/calls/mpi_requests.h"
#include "interpose/real.h"
#include "interpose/record/blocked_threads.h"
#include "interpose/record/poll_loops.h"
#include "interpose/recorder.h"

namespace rollcall {
namespace {

void FreeEntry(segment::BlockedEntry* entry) {
  entry->since.store(0, std::memory_order_relaxed);
  entry->tid.store(0, std::memory_order_release);
}

// The entries of a wait's further communicators. Frees them when the call returns.
class AlsoBlocked {
 public:
  AlsoBlocked() = default;
  ~AlsoBlocked() {
    for (int i = 0; i < count_; ++i) FreeEntry(entries_[i]);
  }
  AlsoBlocked(const AlsoBlocked&) = delete;
  AlsoBlocked& operator=(const AlsoBlocked&) = delete;

  void Add(uint32_t thread, Op op, const AwaitedCall& call, uint64_t since) {
    segment::BlockedEntry* entry = ClaimEntry(thread);
    if (entry == nullptr) return;
    entry->op.store(static_cast<uint32_t>(op), std::memory_order_relaxed);
    entry->comm.store(call.comm->index, std::memory_order_relaxed);
    entry->stream.store(call.number, std::memory_order_relaxed);
    entry->since.store(since, std::memory_order_release);
    entries_[count_++] = entry;
  }

  // The program has left the wait.
  void Forget() { count_ = 0; }

  static void FreeAll(const ThreadState* thread) {
    for (uint32_t i = 0; i < segment::kBlockedCapacity; ++i) {
      segment::BlockedEntry* entry = &recorder.blocked[i];
      const uint32_t owner = entry->tid.load(std::memory_order_relaxed);
      if (owner == thread->thread_id && entry != thread->blocked) FreeEntry(entry);
    }
  }

 private:
  static segment::BlockedEntry* ClaimEntry(uint32_t thread) {
    for (uint32_t i = 0; i < segment::kBlockedCapacity; ++i) {
      uint32_t owner = 0;
      if (recorder.blocked[i].tid.compare_exchange_strong(owner, thread)) {
        return &recorder.blocked[i];
      }
    }
    return nullptr;
  }

  segment::BlockedEntry* entries_[2 * kAwaited];
  int count_ = 0;
};

enum class Until { kAllDone, kAnyDone };

// What a thread waits for: collectives, then messages, which have no position.
struct AwaitedCalls {
  AwaitedCall calls[2 * kAwaited] = {};
  int count = 0;
};

// A wait for any of several requests counts as a wait for a collective only if every request is a
// collective's, and as one for messages only if every request is a message's: a message may end the
// wait, and a server may wait long for its next message.
AwaitedCalls FindAwaited(Until until, const WatchedRequests& watched, WatchedMessages* messages) {
  AwaitedCalls found;
  AwaitedCall collectives[kAwaited] = {};
  if (until == Until::kAllDone || !watched.others()) {
    found.count = watched.Awaited(collectives);
    for (int i = 0; i < found.count; ++i) found.calls[i] = collectives[i];
  }
  if (!messages->any() || (until == Until::kAnyDone && !messages->are_all())) return found;
  LocalComm* comms[kAwaited];
  const int count = messages->Await(comms, kAwaited);
  for (int i = 0; i < count; ++i) found.calls[found.count++] = {comms[i], 0};
  return found;
}

// Room for the statuses that the caller does not want, where MPI chooses the source of a message.
struct OwnStatuses {
  static constexpr int kMost = 16;
  alignas(16) unsigned char bytes[kMost * 24];
};

void* ChooseStatuses(void* given, int count, const WatchedMessages& messages, OwnStatuses* own) {
  const bool needs = messages.any_choice() && StatusOf::IsIgnored(given);
  return needs && count <= OwnStatuses::kMost ? own->bytes : given;
}

// The requests of a call, and where it puts their statuses.
struct RequestArgs {
  int count;
  const MpiWord* requests;
  void* statuses;
  Statuses::Place place = Statuses::Place::kOne;
  const int* listed = nullptr;
  const int* indices = nullptr;

  // Call it after the call. If it has failed, it may have written none of them, and all its
  // requests count as done.
  Statuses At(void* chosen, int result) const {
    if (result != 0) return {Statuses::Place::kByRequest};
    return {place, StatusOf::IsIgnored(chosen) ? nullptr : chosen, listed, indices, count};
  }
};

void EndLeftWait(OpenCall*) {
  const ThreadState* thread = &this_thread;
  ForgetWatchedMessages(thread->thread_id);
  ForgetWatchedRequests(thread->thread_id);
  AlsoBlocked::FreeAll(thread);
}

OpenCall* WaitCall() {
  auto* call = OpenCallRoom<OpenCall>();
  call->thrown = &EndLeftWait;
  return call;
}

template <typename Call>
__attribute__((noinline, noclone)) int RecordWait(Op op, Until until, const RequestArgs& args,
                                                  const Call& call) {
  ROLLCALL_ENDS_BY_EXCEPTION();
  ThreadState* thread = &this_thread;
  const InsideCall inside(thread);
  ClaimedEntry(thread);
  const MayThrow may_throw(WaitCall());
  const WatchedRequests watched(thread, args.count, args.requests);
  WatchedMessages messages(thread, args.count, args.requests);
  const AwaitedCalls awaited = FindAwaited(until, watched, &messages);
  const uint64_t now = Now();
  AlsoBlocked also;
  for (int i = 1; i < awaited.count; ++i) also.Add(thread->thread_id, op, awaited.calls[i], now);
  const Blocked blocked(thread, op, awaited.calls[0].comm,
                        reinterpret_cast<const void*>(awaited.calls[0].number), now);
  OwnStatuses own;
  void* statuses = ChooseStatuses(args.statuses, args.count, messages, &own);
  const int result = call(statuses);
  if (!may_throw.IsOpen()) {
    also.Forget();
    return result;
  }
  messages.Finish(args.At(statuses, result));
  watched.FinishPersistent(args.At(statuses, result));
  return result;
}

// Records a wait for requests. `call` makes it, with the place for the statuses.
template <typename Call>
int ObserveMpiWait(Op op, Until until, const RequestArgs& args, Call call) {
  if (IsInsideCall() || !Recording()) return call(args.statuses);
  EndPolls(&this_thread);
  return RecordWait(op, until, args, call);
}

// Notes a test that has ended nothing. One of any of several requests counts as in FindAwaited().
void NoteFailedTest(ThreadState* thread, Until until, const FailedTest& test,
                    const WatchedRequests& watched, const WatchedMessages& messages) {
  constexpr int kMost = 8;
  IssuedMessage marked[kMost];
  LocalComm* comm = nullptr;
  if (until == Until::kAllDone || messages.are_all()) {
    const int count = messages.List(marked, kMost, &comm);
    if (comm != nullptr) return NotePoll(thread, test, comm, 0, marked, count);
  }
  AwaitedCall calls[kAwaited] = {};
  if (until == Until::kAnyDone && watched.others()) return EndPolls(thread);
  if (watched.Awaited(calls) == 0) return EndPolls(thread);
  NotePoll(thread, test, calls[0].comm, calls[0].number, nullptr, 0);
}

void EndLeftTest(OpenCall*) { EndPolls(&this_thread); }

OpenCall* TestCall() {
  auto* call = OpenCallRoom<OpenCall>();
  call->thrown = &EndLeftTest;
  return call;
}

template <typename Call>
__attribute__((noinline, noclone)) int RecordTest(Op op, Until until, const int* done,
                                                  const RequestArgs& args, const Call& call) {
  ROLLCALL_ENDS_BY_EXCEPTION();
  ThreadState* thread = &this_thread;
  const FailedTest test = {op, args.requests, Now()};
  const InsideCall inside(thread);
  ClaimedEntry(thread);
  const MayThrow may_throw(TestCall());
  const WatchedRequests watched(thread, args.count, args.requests);
  WatchedMessages messages(thread, args.count, args.requests);
  OwnStatuses own;
  // MPI_Request_free (no `done`) writes none.
  void* statuses =
      done == nullptr ? args.statuses : ChooseStatuses(args.statuses, args.count, messages, &own);
  const int result = call(statuses);
  if (!may_throw.IsOpen()) return result;
  if (done == nullptr || result != 0 || *done != 0) {
    EndPolls(thread);
    messages.Finish(args.At(statuses, result));
    watched.FinishPersistent(args.At(statuses, result));
  } else {
    NoteFailedTest(thread, until, test, watched, messages);
  }
  return result;
}

// Records a call that does not wait, but may complete requests. `*done` is 0 if it has completed
// none.
template <typename Call>
int ObserveMpiTest(Op op, Until until, const int* done, const RequestArgs& args, Call call) {
  if (IsInsideCall()) return call(args.statuses);
  if (AnyOpenRequest() || AnyOpenMessage()) return RecordTest(op, until, done, args, call);
  EndPolls(&this_thread);
  return call(args.statuses);
}

}  // namespace
}  // namespace rollcall

using rollcall::ObserveMpiTest;
using rollcall::ObserveMpiWait;
using rollcall::Op;
using rollcall::RequestArgs;
using rollcall::Statuses;
using rollcall::Until;

#define EXPORT extern "C" ROLLCALL_EXPORT

// Looks the real function up, and calls it with `statuses` in the place of the caller's.
#define REAL_CALL(symbol, ...)                      \
  const auto real = ROLLCALL_REAL_MPI(symbol);      \
  if (real == nullptr) return rollcall::kMpiFailed; \
  const auto call = [&](void* statuses) { return real(__VA_ARGS__); }

EXPORT int ROLLCALL_MPI(MPI_Wait)(MpiWord* request, void* status) {
  REAL_CALL(MPI_Wait, request, statuses);
  return ObserveMpiWait(Op::kMPI_Wait, Until::kAllDone, {1, request, status}, call);
}

EXPORT int ROLLCALL_MPI(MPI_Waitall)(int count, MpiWord* requests, void* all) {
  REAL_CALL(MPI_Waitall, count, requests, statuses);
  return ObserveMpiWait(Op::kMPI_Waitall, Until::kAllDone,
                        {count, requests, all, Statuses::Place::kByRequest}, call);
}

EXPORT int ROLLCALL_MPI(MPI_Waitany)(int count, MpiWord* requests, int* index, void* status) {
  REAL_CALL(MPI_Waitany, count, requests, index, statuses);
  return ObserveMpiWait(Op::kMPI_Waitany, Until::kAnyDone,
                        {count, requests, status, Statuses::Place::kOne, nullptr, index}, call);
}

EXPORT int ROLLCALL_MPI(MPI_Waitsome)(int count, MpiWord* requests, int* done, int* indices,
                                      void* all) {
  REAL_CALL(MPI_Waitsome, count, requests, done, indices, statuses);
  return ObserveMpiWait(Op::kMPI_Waitsome, Until::kAnyDone,
                        {count, requests, all, Statuses::Place::kListed, done, indices}, call);
}

EXPORT int ROLLCALL_MPI(MPI_Test)(MpiWord* request, int* flag, void* status) {
  REAL_CALL(MPI_Test, request, flag, statuses);
  return ObserveMpiTest(Op::kMPI_Test, Until::kAllDone, flag, {1, request, status}, call);
}

EXPORT int ROLLCALL_MPI(MPI_Testall)(int count, MpiWord* requests, int* flag, void* all) {
  REAL_CALL(MPI_Testall, count, requests, flag, statuses);
  return ObserveMpiTest(Op::kMPI_Testall, Until::kAllDone, flag,
                        {count, requests, all, Statuses::Place::kByRequest}, call);
}

EXPORT int ROLLCALL_MPI(MPI_Testany)(int count, MpiWord* requests, int* index, int* flag,
                                     void* status) {
  REAL_CALL(MPI_Testany, count, requests, index, flag, statuses);
  return ObserveMpiTest(Op::kMPI_Testany, Until::kAnyDone, flag,
                        {count, requests, status, Statuses::Place::kOne, nullptr, index}, call);
}

EXPORT int ROLLCALL_MPI(MPI_Testsome)(int count, MpiWord* requests, int* done, int* indices,
                                      void* all) {
  REAL_CALL(MPI_Testsome, count, requests, done, indices, statuses);
  return ObserveMpiTest(Op::kMPI_Testsome, Until::kAnyDone, done,
                        {count, requests, all, Statuses::Place::kListed, done, indices}, call);
}

// MPI does not report when a freed request is done, so the request counts as done.
EXPORT int ROLLCALL_MPI(MPI_Request_free)(MpiWord* request) {
  REAL_CALL(MPI_Request_free, (static_cast<void>(statuses), request));
  if (rollcall::FindMpi()) rollcall::ForgetPersistent(rollcall::HandleAt(request));
  return ObserveMpiTest(Op::kMPI_Request_free, Until::kAllDone, nullptr, {1, request, nullptr},
                        call);
}
