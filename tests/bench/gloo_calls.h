// SPDX-License-Identifier: Apache-2.0
// Calls of a gloo group of PyTorch for call_overhead. A stub plays PyTorch, and has real names.
#pragma once

#include <nccl.h>

// The group of the calls below. The process makes one.
void MakeGlooGroup();

int GlooAllReduce(ncclComm_t);
int GlooSend(ncclComm_t);
int WaitForKey(ncclComm_t);  // that is there
