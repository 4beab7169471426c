// SPDX-License-Identifier: Apache-2.0
// Calls of UCC for call_overhead. A stub plays UCC.
#pragma once

#include <nccl.h>

// The team of the calls below. The process makes one.
void MakeUccTeam();

int UccAllReduce(ncclComm_t);  // from its description to its end
