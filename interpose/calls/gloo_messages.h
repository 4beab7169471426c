// SPDX-License-Identifier: Apache-2.0
// The open sends and receives of gloo's groups. They show how many of a group's messages are done:
// `p2p_returned` counts the messages before the first one that is not done.
//
// A message is done when gloo has moved its data, or when the program's wait for it returns. A
// transport of gloo that does not tell when it has moved data (every one but TCP) leaves a message
// open only while the program waits for it.
//
// A small table. Never waits, allocates or locks. A message without room in the table counts as
// done when it was posted: a missed wait is better than a false one.
#pragma once

#include "interpose/local_comm.h"
#include "interpose/ops.h"

namespace rollcall {

// Takes a place for a message that the thread is about to post. -1: there is no room.
int AddMessage(const LocalComm* comm, Op op, uint64_t nth);
// Of a message that this thread posts: its memory, before gloo uses it, and the program's handle.
void SetMessageBuffer(int message, const void* buffer);
void SetMessageWork(int message, const void* work);
void FinishMessage(int message);

// gloo has moved the data of the message with this memory.
void FinishMessageOfBuffer(const void* buffer);

// The open message with this handle; -1: none, or it is done.
int FindMessage(const void* work);
struct Message {
  const LocalComm* comm;
  Op op;
};
Message GetMessage(int message);
void SetMessageAwaited(int message);

// Whether the communicator has an open message.
bool HasOpenMessage(const LocalComm* comm);

// Counts the messages that are done, for `p2p_returned`.
void RaiseMessagesReturned(const LocalComm* comm);

// Removes the messages of an ended communicator.
void ForgetMessages(const LocalComm* comm);

}  // namespace rollcall
