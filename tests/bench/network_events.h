// SPDX-License-Identifier: Apache-2.0
// Events of NCCL's profiler plugin for call_overhead, which plays NCCL.
#pragma once

#include <nccl.h>

// The five events of one step of a send: its start, three states, its end. 1 without a plugin.
int NetworkStep(ncclComm_t);
