// SPDX-License-Identifier: Apache-2.0
// The open requests of MPI's nonblocking collectives, and the open works of gloo's. They show how
// many of a communicator's calls are done: `returned` counts the calls before the first one that is
// not done.
//
// A small table: to check a request of a message costs the reads of one set, or of one counter.
// Never waits: if two threads complete requests at once, both go on, and the later one stores the
// correct count. A call without room in the table counts as done when it returns, and so does a
// call whose request the program frees: a missed wait is better than a false one.
#pragma once

#include "interpose/calls/mpi_comms.h"
#include "interpose/calls/mpi_statuses.h"

namespace rollcall {

// Bracket a call that takes a position, from before it does until it is done or has an open
// request.
void BeginPosition(const LocalComm* comm);
void EndPosition(LocalComm* comm);

// `is_persistent`: it keeps its handle when it is done.
void RecordRequest(const LocalComm* comm, uint64_t position, MpiWord request,
                   bool is_persistent = false);

// Records the request of a communicator's creation, which takes no position. When it is done,
// `created` holds the handle of the communicator, and the other ranks have it as `split_id`.
void RecordCreationRequest(const LocalComm* parent, uint64_t split_id, MpiWord request,
                           const MpiWord* created);

// Records a work of gloo, by its address. A call may have several works.
void RecordWork(const LocalComm* comm, uint64_t position, uintptr_t work);
void FinishWork(uintptr_t work);
// Only if it is the work of the call at this position: a program may have used the address again.
void FinishWorkAt(const LocalComm* comm, uint64_t position, uintptr_t work);
// As EndPosition(), for a call of which `work` is the last one. As long as that is open, the call
// adds nothing to the calls that are done, so this looks at few slots.
void EndPositionOfWork(LocalComm* comm, uintptr_t work);

// Removes the requests on an ended communicator.
void ForgetRequests(const LocalComm* comm);

// How many requests are open. If none is, a wrapper looks no further.
extern std::atomic<uint32_t> open_requests;
inline bool AnyOpenRequest() { return open_requests.load(std::memory_order_relaxed) != 0; }

// A call that a thread waits for: the communicator, and 1 + the position of the first such call.
struct AwaitedCall {
  const LocalComm* comm;
  uint64_t number;
};
inline constexpr int kAwaited = 4;

// False if no call has this work any more.
bool FindWork(uintptr_t work, AwaitedCall* call);

// The requests of one call to MPI_Wait or MPI_Test or a variant. MPI overwrites the requests that
// are done, so the constructor looks them up before the call, and the destructor compares them
// after it. If the program leaves the call, ForgetWatchedRequests() takes its place.
void ForgetWatchedRequests(uint32_t thread);
class WatchedRequests {
 public:
  WatchedRequests(const ThreadState* thread, int count, const MpiWord* requests);
  ~WatchedRequests();
  WatchedRequests(const WatchedRequests&) = delete;
  WatchedRequests& operator=(const WatchedRequests&) = delete;

  // Fills in one call on each communicator, at most kAwaited. Returns how many.
  int Awaited(AwaitedCall (&calls)[kAwaited]) const;
  // Whether some requests belong to messages, or to calls that are not recorded.
  bool others() const { return others_; }
  // Call it after the call of persistent requests.
  void FinishPersistent(const Statuses& statuses) const;

 private:
  uint32_t thread_;
  uint32_t found_ = 0;
  bool others_ = false;
  const MpiWord* requests_;
};

}  // namespace rollcall
