// SPDX-License-Identifier: Apache-2.0
// Counts the messages of a communicator of MPI or gloo in its segment (segment_messages.h), and
// shows which of them threads wait for.
//
// The hot path: never allocates, locks, or calls MPI or gloo. Several threads may use a
// communicator.
#pragma once

#include "interpose/local_comm.h"
#include "interpose/segment_messages.h"

namespace rollcall {

enum class MessageEnd : uint8_t { kSend, kReceive };

// A message, as the rank has issued it. `entry` is nullptr if it is not recorded. Without initial
// values: a wait has room for many.
struct IssuedMessage {
  segment::MessageEntry* entry;
  uint32_t number;  // nth of the entry's sends or receives, from 1
  MessageEnd end;
  bool is_open_choice;  // a receive for which MPI chooses the source or the tag
};

// Counts a message. `peer` and `tag` may be segment::kAnySource and segment::kAnyTag.
IssuedMessage CountMessage(LocalComm* comm, MessageEnd end, int32_t peer, int32_t tag);

// The next message from the peer, which the rank has not asked for yet: what a probe waits for.
IssuedMessage NextMessage(LocalComm* comm, int32_t peer, int32_t tag);

// A receive for which MPI chose is done, or was given up: it counts no more in the entry of its
// choice.
void EndChoice(const IssuedMessage& message);

// A receive may never get its message.
void NoteCancelled(LocalComm* comm);

// Show that a thread waits for the message, and no more. Several threads may wait for messages of
// one entry: the last of these is shown.
void AwaitMessage(const IssuedMessage& message);
void EndAwait(const IssuedMessage& message);

}  // namespace rollcall
