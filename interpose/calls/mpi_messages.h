// SPDX-License-Identifier: Apache-2.0
// MPI's messages: which are issued, and the open requests of those that do not block.
//
// A small table of requests. Never waits, allocates or locks. A message without room in the table
// counts as issued, and nobody is seen to wait for it: a missed wait is better than a false one.
#pragma once

#include "interpose/calls/mpi_comms.h"
#include "interpose/calls/mpi_statuses.h"
#include "interpose/record/message_counts.h"

namespace rollcall {

// Counts a message with `peer`; an entry of nullptr for MPI_PROC_NULL.
IssuedMessage Issue(LocalComm* comm, MessageEnd end, int peer, int tag);
// The message that a probe waits for.
IssuedMessage Probe(LocalComm* comm, int peer, int tag);

// Where the caller wants the status of a receive; the library's own place if it wants none.
class StatusOf {
 public:
  explicit StatusOf(void* status) : given_(status) {}
  void* get() { return IsIgnored(given_) ? own_ : given_; }
  static bool IsIgnored(const void* status);

 private:
  void* given_;
  alignas(16) unsigned char own_[64];  // larger than MPI_Status of any MPI
};

// The nth status of an array.
const void* StatusAt(const void* statuses, int n);

// MPI has chosen the message of a receive with MPI_ANY_SOURCE or MPI_ANY_TAG: counts it where it
// belongs.
void CountChosen(LocalComm* comm, const IssuedMessage& message, const void* status);
// Counts a message that no receive asked for (MPI_Mprobe).
void CountTaken(LocalComm* comm, const void* status);

// Remembers the message of a request that the program holds.
// `is_persistent`: it keeps its handle when it is done.
void RecordMessage(LocalComm* comm, const IssuedMessage& message, MpiWord request,
                   bool is_persistent = false);
// The program gives a request up: MPI may cancel its receive.
void CancelMessage(MpiWord request);
// Removes the requests on an ended communicator.
void ForgetMpiMessages(const LocalComm* comm);

extern std::atomic<uint32_t> open_message_requests;
inline bool AnyOpenMessage() { return open_message_requests.load(std::memory_order_relaxed) != 0; }

// Of a call that a tool makes from inside its own wrapper, on another communicator than the
// program's call. Nobody counts it, so the counts there are no evidence.
void NoteNested(const ThreadState& thread, MpiWord handle);

// Marks the thread as inside a call of MPI on this communicator, for the time of a scope.
class InsideMessage {
 public:
  InsideMessage(ThreadState* thread, const LocalComm* comm) : inside_(thread), thread_(thread) {
    thread->messages_on = comm->index + 1;
  }
  ~InsideMessage() { thread_->messages_on = 0; }
  InsideMessage(const InsideMessage&) = delete;
  InsideMessage& operator=(const InsideMessage&) = delete;

 private:
  const InsideCall inside_;
  ThreadState* thread_;
};

struct MessageRequest;  // mpi_messages.cc

// The messages among the requests of one call to MPI_Wait, MPI_Test, or a variant. The constructor
// looks them up before the call, because MPI overwrites the requests that are done, and Finish()
// compares them after it.
class WatchedMessages {
 public:
  WatchedMessages(int count, const MpiWord* requests);
  WatchedMessages(const WatchedMessages&) = delete;
  WatchedMessages& operator=(const WatchedMessages&) = delete;

  bool any() const { return found_ != 0; }
  bool any_choice() const { return has_choice_; }
  // Whether each request that is not MPI_REQUEST_NULL is a message of the table.
  bool are_all() const { return are_all_; }

  // Shows that the thread waits for those that are not done. Fills in their communicators, at most
  // `most`, and returns how many.
  int Await(LocalComm** comms, int most);
  // The receives, and a send that is alone: a test of several tells nothing about its sends.
  // `*comm`: that of the first one.
  int List(IssuedMessage* listed, int most, LocalComm** comm) const;
  // After the call.
  void Finish(const Statuses& statuses);

 private:
  static constexpr int kMostWatched = 96;
  struct Watched {
    MessageRequest* slot;
    uint64_t owner;  // of the slot: another owner means another request
    int index;
    bool is_awaited;
  };
  void EndWait(Watched* watched);
  static void EndRequest(const MessageRequest& slot, int index, const Statuses& statuses);

  int count_ = 0;
  int found_ = 0;
  bool has_choice_ = false;
  bool are_all_ = true;
  const MpiWord* requests_;
  Watched watched_[kMostWatched];
};

}  // namespace rollcall
