// SPDX-License-Identifier: Apache-2.0
// MPI's messages: which are issued, and the open requests of those that do not block.
//
// A small table of requests. Never waits, allocates or locks. A message without room in the table
// counts as issued, and no wait for it is seen: a missed wait is better than a false one.
#pragma once

#include "interpose/calls/mpi_comms.h"
#include "interpose/calls/mpi_statuses.h"
#include "interpose/record/blocked_threads.h"
#include "interpose/record/exceptions.h"
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
// The program gives a request up: MPI may cancel its message.
void CancelMessage(MpiWord request);
// MPI uses the handle for another request.
void ForgetMessage(MpiWord request);
// Removes the requests on an ended communicator.
void ForgetMpiMessages(const LocalComm* comm);

extern std::atomic<uint32_t> open_message_requests;
inline bool AnyOpenMessage() { return open_message_requests.load(std::memory_order_relaxed) != 0; }

// Notes a call that a tool makes from inside its own wrapper, on another communicator than the
// program's call. It is not counted, so the counts there are no evidence.
void NoteNested(const ThreadState& thread, MpiWord handle);

// The call for messages that a thread is in.
struct MessageCall : OpenCall {
  IssuedMessage messages[2];  // unused without an entry
};
void EndMessageCall(const MessageCall& call);

// Records such a call for the time of a scope, on the communicator of `comm`.
class MessageRecord {
 public:
  // `op`: the call waits for the messages; kNone: it does not wait.
  MessageRecord(LocalComm* comm, Op op, const IssuedMessage& first,
                const IssuedMessage& second = {});
  ~MessageRecord() {
    if (IsOpen()) EndMessageCall(*OpenCallRoom<MessageCall>());
  }
  MessageRecord(const MessageRecord&) = delete;
  MessageRecord& operator=(const MessageRecord&) = delete;

  // Call it after the call. False if it has ended already, and nothing of it is to be recorded.
  bool IsOpen() const { return may_throw_.IsOpen(); }

 private:
  static MessageCall* Begin(const LocalComm* comm, bool waits, const IssuedMessage& first,
                            const IssuedMessage& second);

  const InsideCall inside_;
  const Blocked blocked_;
  const MayThrow may_throw_;
};

struct MessageRequest;  // mpi_messages.cc

// The messages among the requests of one call to MPI_Wait, MPI_Test, or a variant. The constructor
// looks them up before the call, because MPI overwrites the requests that are done, and Finish()
// compares them after it. If the program leaves the call, ForgetWatchedMessages() takes its place.
void ForgetWatchedMessages(uint32_t thread);
class WatchedMessages {
 public:
  WatchedMessages(const ThreadState* thread, int count, const MpiWord* requests);
  ~WatchedMessages() {
    if (has_more_) ForgetWatchedMessages(thread_);
  }
  WatchedMessages(const WatchedMessages&) = delete;
  WatchedMessages& operator=(const WatchedMessages&) = delete;

  bool any() const { return found_ != 0; }
  bool any_choice() const { return has_choice_; }
  // Whether each request that is not MPI_REQUEST_NULL is a message of the table.
  bool are_all() const { return are_all_; }

  // Shows that the thread waits for those that are not done, on as many communicators as `most`.
  // Fills these in, and returns how many.
  int Await(LocalComm** comms, int most);
  // The receives, and a send that is alone: a test of several shows nothing about its sends.
  // `*comm`: that of the first one.
  int List(IssuedMessage* listed, int most, LocalComm** comm) const;
  // After the call.
  void Finish(const Statuses& statuses);

 private:
  static constexpr int kMostWatched = 96;
  struct Watched {
    MessageRequest* slot;
    uint64_t owner;  // of the slot: another owner means another request
    IssuedMessage message;
    int index;
  };
  void FinishRequest(MessageRequest* slot, uint64_t owner, int index, const Statuses& statuses);

  uint32_t thread_;
  int count_ = 0;
  int found_ = 0;
  bool has_more_ = false;  // than `watched_` has room for: no wait for these is seen
  bool has_choice_ = false;
  bool are_all_ = true;
  const MpiWord* requests_;
  Watched watched_[kMostWatched];
};

}  // namespace rollcall
