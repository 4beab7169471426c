// SPDX-License-Identifier: Apache-2.0
// Profiler plugins, as NCCL loads and calls them. NCCL_PROFILER_PLUGIN names a library ("none": no
// plugin). Without it, the simulation tries libnccl-profiler.so. It takes the newest table up to
// version ROLLCALL_SIM_PROFILER (6). It sends events of calls, groups and launches, but none of
// kernels or of the network.
#pragma once

#include <vector>

#include "tests/sim/nccl/comm.h"

namespace rollcall::sim {

// A communicator was created; a communicator ends.
void ProfilerInit(Comm* comm);
void ProfilerFinalize(Comm* comm);

// A call was made, in a group or alone; the group ends; its calls are launched; a call has ended.
void ProfileCall(const Comm& comm, const Call& call, void* stream, bool captured);
void ProfileGroupEnd();
void ProfileLaunch(const Comm& comm, const std::vector<Call>& calls);
void ProfileGroupEnded();

}  // namespace rollcall::sim
