// SPDX-License-Identifier: Apache-2.0
// The ids of NCCL's communicators, which every rank computes alike without talking to another one.
//
// For the wrappers of calls that create communicators, before the real call, on the thread that makes
// it. Reads the environment and the caller's arguments; never waits, allocates or changes errno.
#pragma once

#include "interpose/comm_table.h"
#include "interpose/nccl_api.h"

namespace rollcall {

// The kinds of children of a communicator: each has ids of its own.
inline constexpr uint64_t kSplit = 0x73706c6974000000;
inline constexpr uint64_t kShrink = 0x736872696e6b0000;

// A communicator made from a unique id. `config` may be nullptr.
NewComm FromUniqueId(const ncclUniqueId& id, int ranks, int rank, const ncclConfig_t* config);

// A child: nothing is known of it yet but its parent, and which of the parent's children of this
// kind it is. The ranks of its colour are known when it is made. False: the parent is not known.
bool FromParent(ncclComm_t parent_handle, uint64_t kind, const ncclConfig_t* config, NewComm* what);

// A grown communicator, as a rank of the parent makes it: the rank keeps its number. `unique_id` may
// be nullptr. False: the parent is not known.
bool GrownFromParent(ncclComm_t parent_handle, int ranks, const ncclUniqueId* unique_id,
                     const ncclConfig_t* config, NewComm* what);

// Records the unique id by which ranks will join the parent's next grown communicator. Those ranks
// know only the unique id, the ranks of the parent know only the parent, and the rank that makes the
// unique id knows both. All of them wait until it is made, so this record is there in time.
void SetGrowId(ncclComm_t parent_handle, const ncclUniqueId* unique_id);

// Equal on all survivors of a shrink, in whichever order they list the excluded ranks.
uint64_t ExclusionHash(const int* excluded, int count);

}  // namespace rollcall
