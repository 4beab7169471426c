// SPDX-License-Identifier: Apache-2.0
// The open sends and receives of gloo's groups. They show how many of a group's messages are done:
// `p2p_returned` counts the messages before the first one that is not done.
//
// A message with a tag has no place in that order: two counts show whether its other end was
// posted, as with MPI (message_counts.h). So has a receive from any rank.
//
// A message counts as done but while the program waits for it. gloo's own functions would show when
// the data has moved, but a process may hold several copies of gloo, of different versions, so the
// library exports no name of gloo.
//
// A small table. Never waits, allocates or locks. A message without room in the table counts as
// done when it was posted: a missed wait is better than a false one.
#pragma once

#include "interpose/local_comm.h"
#include "interpose/ops.h"
#include "interpose/record/message_counts.h"

namespace rollcall {

// Takes a place for a message that the thread is about to post. -1 if there is no room.
int AddMessage(const LocalComm* comm, Op op, uint64_t nth);
// The same for a message with this tag that the communicator counts.
int AddCountedMessage(const LocalComm* comm, Op op, const IssuedMessage& counted, int32_t tag);
// Sets the program's handle of a message that this thread posts.
void SetMessageWork(int message, const void* work);
void FinishMessage(int message);

// The open message with this handle; -1 if there is none, or it is done.
int FindMessage(const void* work);
struct Message {
  LocalComm* comm;
  Op op;
  bool is_open_choice;  // a receive from any rank
};
Message GetMessage(int message);
void SetMessageAwaited(int message);
// gloo has chosen this rank's message for a receive from any rank.
void SetMessageSource(int message, int32_t source);
// It may never come: the counts prove nothing any more.
void CancelMessage(int message);

// Whether the communicator has a message that the program has not waited for yet.
bool HasOpenMessage(const LocalComm* comm);

// Counts the messages that are done, for `p2p_returned`.
void RaiseMessagesReturned(const LocalComm* comm);

// Removes the messages of an ended communicator.
void ForgetMessages(const LocalComm* comm);

}  // namespace rollcall
