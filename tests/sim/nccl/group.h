// SPDX-License-Identifier: Apache-2.0
// Groups: what a thread has called since ncclGroupStart(), and how it starts.
//
// A call outside a group is a group of one. At the end of the outermost group
// the host meets those peers that a communicator has not been in touch with
// (and waits for ever for one that does not come); then everything is put on
// its streams, and the call returns.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <functional>

#include "tests/sim/nccl/comm.h"

namespace rollcall::sim {

// A call that creates or splits communicators and so blocks until others make
// it too. Those of one group run at the same time, those with the same
// `parent` one after the other.
struct Job {
  CommRef comm;    // whose state says whether it is done, may be null
  CommRef parent;  // may be null
  std::function<ncclResult_t()> run;
};

void GroupStart();
ncclResult_t GroupEnd();
// Ends the group without starting anything in it.
ncclResult_t GroupDrop();

// Checks a call and starts it, or adds it to the thread's group.
ncclResult_t Submit(ncclComm_t handle, Call call, cudaStream_t stream);
ncclResult_t SubmitJob(Job job);
// Notes an error so that the end of the group returns it. Returns `result`.
ncclResult_t Fail(ncclResult_t result);

}  // namespace rollcall::sim
