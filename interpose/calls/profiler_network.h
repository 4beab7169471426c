// SPDX-License-Identifier: Apache-2.0
// Records the events by which NCCL reports its transfers over the network to the profiler plugin
// (profiler_plugin.h), from version 5 of the plugin's interface on: see
// docs/decisions/network_states.md.
//
// An event's handle is an address within the entry of its transfer in the segment, so that no event
// needs a look-up. NCCL never follows a handle.
#pragma once

#include "interpose/calls/profiler_abi.h"
#include "interpose/local_comm.h"

namespace rollcall {

// The events that ProxyStep events come with, and their parents. If another plugin requests one of
// them, its handles have the place of ours, and the library records no transfers: it could not
// distinguish those of sends from those of collectives.
inline constexpr uint64_t kNetworkEvents =
    profiler::kP2p | profiler::kProxyOp | profiler::kProxyStep | profiler::kNetPlugin;
inline constexpr uint64_t kRequestedNetworkEvents = profiler::kProxyOp | profiler::kProxyStep;

// Whether the library records the transfers of an NCCL that uses this version of the interface.
bool RecordsNetwork(int version);

// The communicator of this rank and size that a wrapper is creating: by this thread, or the only
// such one. nullptr if there is none, or not clear. `is_taken(comm)`: NCCL has reported it already.
LocalComm* CommBeingCreated(int rank, int ranks, bool (*is_taken)(const LocalComm* comm));

// The transfers of one operation begin. Returns the handle; nullptr if not recorded. `is_p2p`: of a
// send or receive.
void* StartTransfer(const LocalComm* comm, uint64_t generation, const profiler::ProxyOp& transfer,
                    bool is_p2p);

// A step of a transfer begins. nullptr if `transfer` is not a handle of StartTransfer().
void* StartNetworkStep(const void* transfer, const profiler::ProxyStep& step);

// False if `handle` is not ours.
bool StopNetworkEvent(const void* handle);
bool RecordNetworkState(const void* handle, int state);

}  // namespace rollcall
