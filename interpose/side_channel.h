// SPDX-License-Identifier: Apache-2.0
// Calls on a communicator that have an order of their own beside its collectives.
// Each such order is recorded as a communicator beside the real one: the same
// ranks, its own positions. What is known of collectives, and of sends and
// receives, then holds for them too.
//
// For wrappers, on the thread that makes the call, before it. The first call of each kind creates the
// communicator beside (comm_table.h); those that follow look it up without a lock.
#pragma once

#include "interpose/local_comm.h"
#include "interpose/nccl_api.h"

namespace rollcall {

// Collective calls that wait for each other on the host: window registration, DevCommCreate.
// The result is to be given to ObserveCall(); `comm` itself where it is not known.
ncclComm_t HostCallChannel(ncclComm_t comm);

// Signals with this index and context, which have an order between each two ranks.
ncclComm_t SignalChannel(ncclComm_t comm, int signal_index, int context);

// The communicator has ended, and so have these.
void EndSideChannels(const LocalComm* comm);

}  // namespace rollcall
