// SPDX-License-Identifier: Apache-2.0
// How often each unique id was used, whether or not there was room for the communicator: its ranks
// must agree on the communicator's id, and each has its own room.
//
// For calls that create communicators, from any thread; ForgetCreations() for the child of a fork.
// A table of fixed size, without a lock, an allocation or a system call.
#pragma once

#include <stdint.h>

namespace rollcall {

// A communicator of this base id is created as `rank`.
void CountCreation(uint64_t base_id, int32_t rank);

// How many this process has created: one unique id can serve several times where NCCL_COMM_ID is
// set.
uint32_t TimesCreated(uint64_t base_id, int32_t rank);

// In a child of fork.
void ForgetCreations();

}  // namespace rollcall
