// SPDX-License-Identifier: Apache-2.0
// Counts how often each unique id was used, also when there was no room for the communicator: all
// ranks must compute the same id, and the room differs between ranks.
//
// Calls that create communicators use this, from any thread. The child of a fork calls
// ForgetCreations(). The table has a fixed size and needs no lock, allocation or system call.
#pragma once

#include <stdint.h>

namespace rollcall {

// Counts the creation of a communicator with this base id as `rank`.
void CountCreation(uint64_t base_id, int32_t rank);

// The number of these creations in this process. One unique id can serve several times if
// NCCL_COMM_ID is set.
uint32_t TimesCreated(uint64_t base_id, int32_t rank);

// Resets the counts, in a child of fork.
void ForgetCreations();

}  // namespace rollcall
