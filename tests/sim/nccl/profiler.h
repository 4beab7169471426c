// SPDX-License-Identifier: Apache-2.0
// Profiler plugins, as NCCL loads and calls them. NCCL_PROFILER_PLUGIN names a library ("none": no
// plugin). Without it, the simulation tries libnccl-profiler.so. It takes the newest table up to
// version ROLLCALL_SIM_PROFILER (6). It sends events of calls, groups, launches and transfers over
// the network (network.h), but none of kernels.
#pragma once

#include <vector>

#include "interpose/calls/profiler_abi.h"
#include "tests/sim/nccl/comm.h"

namespace rollcall::sim {

// A communicator was created; a communicator ends.
void ProfilerInit(Comm* comm);
void ProfilerFinalize(Comm* comm);

// A call was made, in a group or alone; the group ends; its calls are launched; a call has ended.
void ProfileCall(const Comm& comm, const Call& call, void* stream, bool captured);
void ProfileGroupEnd();
void ProfileLaunch(const Comm& comm, std::vector<Call>* calls);
void ProfileGroupEnded();

// The transfers of a collective with one peer on one channel: an event, with an event for each of
// its steps. NCCL keeps the handles of the steps modulo 8, and records no state of a step whose
// handle or whose transfer's handle is null.
struct TransferFacts {
  int channel, peer;
  bool sends;
  int steps;
};
class ProfiledTransfer {
 public:
  ProfiledTransfer(const Comm& comm, const Call& call, const TransferFacts& facts);
  void BeginStep(uint64_t step);
  void Record(uint64_t step, int state);
  void EndStep(uint64_t step);
  void Stop();

 private:
  const Comm& comm_;
  void* handle_ = nullptr;
  void* steps_[8] = {};
};

}  // namespace rollcall::sim
