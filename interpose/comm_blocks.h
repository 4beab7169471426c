// SPDX-License-Identifier: Apache-2.0
// Which communicator has which block of the segment: a new one, or that of a communicator that ended.
//
// Called when a communicator is created, from any thread. Makes system calls for room in the file,
// and takes no lock. What there is no room for it counts in the segment, and says in one line.
#pragma once

#include "interpose/local_comm.h"

namespace rollcall {

// A block, all zeros but for its state, with room for as many records as there is room for. nullptr:
// there is no room (counted, and said).
LocalComm* ClaimBlock();

// Whether the communicator's records are in the segment. Else there was no room for them.
bool IsRecorded(const LocalComm* comm);

}  // namespace rollcall
