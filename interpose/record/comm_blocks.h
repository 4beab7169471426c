// SPDX-License-Identifier: Apache-2.0
// Assigns blocks of the segment to communicators: a new block, or that of an ended communicator.
//
// Called when a communicator is created, from any thread. Makes system calls for room in the file,
// and takes no lock. It counts what it has no room for in the segment, and writes one line to
// stderr.
#pragma once

#include "interpose/local_comm.h"

namespace rollcall {

// Claims a block, with as many records as there is room for. The block is zero except for its
// state. nullptr if there is no room (counted and reported).
LocalComm* ClaimBlock();

// Whether the communicator's records are in the segment. False if there was no room for them.
bool IsRecorded(const LocalComm* comm);

}  // namespace rollcall
