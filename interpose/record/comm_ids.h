// SPDX-License-Identifier: Apache-2.0
// The ids of NCCL's communicators. Every rank computes the same id without communicating.
//
// The wrappers use this for calls that create communicators, before the real call, on the thread
// that makes it. Reads the environment and the caller's arguments. Never waits, allocates or
// changes errno.
#pragma once

#include "interpose/child_ids.h"
#include "interpose/nccl_api.h"
#include "interpose/record/comm_table.h"

namespace rollcall {

// A communicator made from a unique id. `config` may be nullptr.
NewComm FromUniqueId(const ncclUniqueId& id, int ranks, int rank, const ncclConfig_t* config);

// Makes the same from the hash of the unique id of any library.
NewComm FromIdHash(uint64_t hash, int ranks, int rank);

// A child of `parent_handle`; `kind` as in child_ids.h. Only the parent and the child's number
// among the parent's children of this kind are known; the members of its colour are known once it
// is created. False if the parent is unknown.
bool FromParent(ncclComm_t parent_handle, uint64_t kind, const ncclConfig_t* config, NewComm* what);

// A grown communicator, for a rank of the parent, which keeps its number. `unique_id` may be
// nullptr. False if the parent is unknown.
bool GrownFromParent(ncclComm_t parent_handle, int ranks, const ncclUniqueId* unique_id,
                     const ncclConfig_t* config, NewComm* what);

// Records the unique id by which ranks will join the parent's next grown communicator. The joining
// ranks have only the unique id, the ranks of the parent have only the parent, and the rank that
// makes the unique id has both. All of them wait until it is made, so the record comes in time.
void SetGrowId(ncclComm_t parent_handle, const ncclUniqueId* unique_id);

// A hash of the excluded ranks that does not depend on their order: equal on all survivors of a
// shrink.
uint64_t ExclusionHash(const int* excluded, int count);

}  // namespace rollcall
