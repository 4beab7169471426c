// SPDX-License-Identifier: Apache-2.0
// MPI's collectives that have returned and are not done yet, by their requests, and
// how many of a communicator's calls are done: `returned` counts those before the
// first that is not.
//
// A small table, so that a request of a message costs a look at one set of it, or at
// one counter. Never waits: two threads that complete requests at once both work on,
// and the later one counts right. A call for which there is no room counts as done
// when it returns, and so does one whose request is given up: better a wait unseen
// than one that is none.
#pragma once

#include "interpose/mpi_comms.h"

namespace rollcall {

// Around a call that takes a position, from before it does until it is done or recorded.
void BeginMpiPosition(const LocalComm* comm);
void EndMpiPosition(LocalComm* comm);

void RecordRequest(const LocalComm* comm, uint64_t position, MpiWord request);

// The request of a communicator's creation, which takes no position: when it is done, `created`
// holds the handle of the communicator that the others know by `split_id`.
void RecordCreationRequest(const LocalComm* parent, uint64_t split_id, MpiWord request,
                           const MpiWord* created);

// Its calls are of no interest any more.
void ForgetRequests(const LocalComm* comm);

// Whether there is any: nothing else has to be looked at where there is none.
extern std::atomic<uint32_t> open_requests;
inline bool AnyOpenRequest() { return open_requests.load(std::memory_order_relaxed) != 0; }

// Where a thread waits: the communicator, and 1 + the position of its first call there.
struct AwaitedCall {
  const LocalComm* comm;
  uint64_t number;
};
inline constexpr int kAwaited = 4;

// The requests that one call of MPI_Wait's or MPI_Test's kind is given. MPI replaces those that
// are done in the array, so they are looked up before the call, and compared after it.
class WatchedRequests {
 public:
  WatchedRequests(const ThreadState* thread, int count, const MpiWord* requests);
  ~WatchedRequests();
  WatchedRequests(const WatchedRequests&) = delete;
  WatchedRequests& operator=(const WatchedRequests&) = delete;

  // One on each communicator, at most kAwaited; returns how many.
  int Awaited(AwaitedCall (&calls)[kAwaited]) const;
  // Some of the requests are of messages, or of calls that are not followed.
  bool others() const { return others_; }

 private:
  uint32_t thread_;
  uint32_t found_ = 0;
  bool others_ = false;
  const MpiWord* requests_;
};

}  // namespace rollcall
