// SPDX-License-Identifier: Apache-2.0
// The communicators of this process: how one begins, and its state.
//
// For the wrappers of calls that create and end communicators, from any thread. AddComm() makes
// system calls and takes no lock; SetState() and ChangeState() store two words. None of them throws
// or changes errno.
#pragma once

#include "interpose/local_comm.h"

namespace rollcall {

// What is known of a communicator before its creation is called.
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

// A block for a communicator about to be created; nullptr when there is no room (counted), or
// nothing is recorded. Its state is kInitializing.
LocalComm* AddComm(const NewComm& what);

void SetState(LocalComm* comm, segment::CommState state);

// The same, unless another thread has given it another state than `from` meanwhile.
void ChangeState(LocalComm* comm, segment::CommState from, segment::CommState to);

}  // namespace rollcall
