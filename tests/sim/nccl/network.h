// SPDX-License-Identifier: Apache-2.0
// NCCL's transfers over the network, for what a profiler plugin sees of them: each collective goes
// in steps around a ring on two channels before its data moves (a broadcast, along a chain). The
// states and their order are those of NCCL's sendProxyProgress() and recvProxyProgress().
//
//   ROLLCALL_SIM_NETWORK=socket   the network takes two steps that the receiver has not posted
//   ROLLCALL_SIM_NETWORK=ib       it takes none: the sender waits for the peer
//   ROLLCALL_SIM_NETWORK_FAULT=FAULT:RANK[@N][,...]   from the Nth collective of a communicator on:
//     kernel  RANK's GPU neither produces nor takes data
//     take    RANK's GPU takes no data
//     link    what RANK sends does not arrive
//     proxy   RANK's proxy thread does nothing
//     slow    RANK's GPU needs 20 ms for a step
//
// A send or receive is one step on the first channel (transfer.cc).
#pragma once

#include "tests/sim/nccl/comm.h"

namespace rollcall::sim {

// Whether transfers go over the network (ROLLCALL_SIM_NETWORK).
bool HasNetwork();

// Waits until all steps of the collective have ended. False if the communicator is stopped. Without
// ROLLCALL_SIM_NETWORK there are none.
bool RunNetwork(Comm& comm, const Call& call);

}  // namespace rollcall::sim
