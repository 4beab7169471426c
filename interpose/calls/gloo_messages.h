// SPDX-License-Identifier: Apache-2.0
// The open sends and receives of gloo's groups. They show how many of a group's messages are done:
// `p2p_returned` counts the messages before the first one that is not done.
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

namespace rollcall {

// Takes a place for a message that the thread is about to post. -1 if there is no room.
int AddMessage(const LocalComm* comm, Op op, uint64_t nth);
// Sets the program's handle of a message that this thread posts.
void SetMessageWork(int message, const void* work);
void FinishMessage(int message);

// The open message with this handle; -1 if there is none, or it is done.
int FindMessage(const void* work);
struct Message {
  const LocalComm* comm;
  Op op;
};
Message GetMessage(int message);
void SetMessageAwaited(int message);

// Whether the communicator has a message that the program has not waited for yet.
bool HasOpenMessage(const LocalComm* comm);

// Counts the messages that are done, for `p2p_returned`.
void RaiseMessagesReturned(const LocalComm* comm);

// Removes the messages of an ended communicator.
void ForgetMessages(const LocalComm* comm);

}  // namespace rollcall
