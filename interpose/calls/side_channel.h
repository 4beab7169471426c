// SPDX-License-Identifier: Apache-2.0
// Side channels: calls on a communicator that have an order of their own, apart from its
// collectives. The library records each such order as a further communicator with the same ranks
// and its own positions, so that the rules for collectives, sends and receives apply to it.
//
// Wrappers use this, on the thread that makes the call, before it. The first call of each kind adds
// the side channel (comm_table.h). Later calls find it without a lock.
#pragma once

#include "interpose/local_comm.h"
#include "interpose/nccl_api.h"

namespace rollcall {

// The channel of collective calls that wait for each other on the host: window registration and
// DevCommCreate. Pass the result to ObserveCall(). Returns `comm` itself if it is unknown.
ncclComm_t HostCallChannel(ncclComm_t comm);

// The channel of signals with this index and context, which are ordered between each two ranks.
ncclComm_t SignalChannel(ncclComm_t comm, int signal_index, int context);

// Ends the side channels of a communicator that has ended.
void EndSideChannels(const LocalComm* comm);

}  // namespace rollcall
