// SPDX-License-Identifier: Apache-2.0
// The states of NCCL's transfers over the network, in the segment (segment_network.h).
//
// The profiler plugin uses this. MakeNetworkRoom() makes system calls, where communicators are
// created; ForgetTransfers() is for their end. The other functions are for NCCL's proxy thread, at
// each step of a transfer: no lock, no allocation, no system call. One thread drives the transfers
// of a communicator. If two did, states could be wrong for a moment, and nothing else.
#pragma once

#include "interpose/local_comm.h"
#include "interpose/network_wait.h"
#include "interpose/segment_network.h"

namespace rollcall {

// Makes room for the transfers of one more communicator. False if there is no room for any
// (reported).
bool MakeNetworkRoom();

// The entry of a transfer, which it claims if necessary. nullptr if no entry is free (counted).
segment::NetworkEntry* FindTransfer(uint64_t generation, const segment::NetworkTransfer& transfer);

// A step has begun; it waits; it has ended. Of `step`, SetWait() and EndStep() need only the
// remainder modulo kNetworkSteps. NCCL may begin a step several times before it posts it.
void BeginStep(segment::NetworkEntry* entry, uint64_t step);
void SetWait(segment::NetworkEntry* entry, uint64_t step, NetworkWait wait);
void EndStep(segment::NetworkEntry* entry, uint64_t step);

// Frees the entries of a communicator that has ended.
void ForgetTransfers(uint32_t comm, uint64_t generation);

// In a child of fork, which has no segment yet.
void ForgetNetworkRoom();

}  // namespace rollcall
