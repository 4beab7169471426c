// SPDX-License-Identifier: Apache-2.0
// The communicators of this process: adds a communicator, and changes its state.
//
// The wrappers of calls that create and end communicators use this, from any thread. AddComm()
// makes system calls and takes no lock. SetState() and ChangeState() store two words. None of them
// throws or changes errno.
#pragma once

#include "interpose/local_comm.h"

namespace rollcall {

// The facts about a communicator that the library has before the real creation call.
struct NewComm {
  uint64_t base_id = 0;  // hash of the unique id; 0 for children
  uint64_t parent_id = 0;
  uint64_t split_id = 0;
  uint64_t id = 0;
  int32_t rank = -1, size = 0;
  int32_t parent_rank = -1, parent_size = 0;
  const char* name = nullptr;
  bool non_blocking = false;
};

// Claims a block for a communicator that is about to be created, in the state kInitializing.
// nullptr if there is no room (counted), or recording is off.
LocalComm* AddComm(const NewComm& what);

void SetState(LocalComm* comm, segment::CommState state);

// As SetState(), but does nothing if another thread has changed the state from `from`.
void ChangeState(LocalComm* comm, segment::CommState from, segment::CommState to);

}  // namespace rollcall
