// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/nccl/group.h"

#include <cuda.h>

#include <algorithm>

#include "tests/sim/cuda/device.h"
#include "tests/sim/nccl/launch.h"
#include "tests/sim/nccl/profiler.h"
#include "tests/sim/nccl/quiet_thread.h"
#include "tests/sim/nccl/reduce.h"
#include "tests/sim/nccl/warn.h"

namespace rollcall::sim {
namespace {

struct Group {
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  std::vector<Pending> calls;
  std::vector<Job> jobs;
};

// Never destroyed: a library's destructors may still call NCCL.
Group& ThreadGroup() {
  static thread_local Group* group = new Group;
  return *group;
}

bool HasRoot(Function function) {
  return function == Function::kReduce || function == Function::kBroadcast ||
         function == Function::kGather || function == Function::kScatter ||
         function == Function::kSend || function == Function::kRecv;
}

// Which buffers a rank must give.
bool NeedsSend(const Comm& comm, const Call& call) {
  if (call.function == Function::kRecv) return false;
  const bool root_only =
      call.function == Function::kBroadcast || call.function == Function::kScatter;
  return !root_only || call.root == comm.rank;
}
bool NeedsRecv(const Comm& comm, const Call& call) {
  if (call.function == Function::kSend) return false;
  const bool root_only = call.function == Function::kReduce || call.function == Function::kGather;
  return !root_only || call.root == comm.rank;
}

ncclResult_t CheckCall(Comm& comm, Call* call) {
  if (HasRoot(call->function) && (call->root < 0 || call->root >= comm.nranks)) {
    return Warn(ncclInvalidArgument, "invalid root or peer %d (should be in the 0..%d range)",
                call->root, comm.nranks - 1);
  }
  const size_t element = ElementSize(call->dtype);
  if (element == 0) return Warn(ncclInvalidArgument, "invalid type %d", call->dtype);
  if (static_cast<int>(call->op) < 0) {
    return Warn(ncclInvalidArgument, "invalid reduction operation %d", call->op);
  }
  if (call->op >= ncclNumOps) {
    call->scale = comm.FindReduction(call->op);
    if (call->scale == nullptr || call->scale->dtype != call->dtype) {
      return Warn(ncclInvalidArgument, "invalid reduction operation %d", call->op);
    }
    call->op = ncclSum;
  }
  call->bytes = call->count * element;
  if (call->count == 0) return ncclSuccess;
  if ((NeedsSend(comm, *call) && call->send == nullptr) ||
      (NeedsRecv(comm, *call) && call->recv == nullptr)) {
    return Warn(ncclInvalidArgument, "a buffer is NULL");
  }
  return ncclSuccess;
}

// The jobs' numbers, in lanes: those of one parent share a lane.
std::vector<std::vector<size_t>> Lanes(const std::vector<Job>& jobs) {
  std::vector<std::vector<size_t>> lanes;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const auto lane = std::find_if(lanes.begin(), lanes.end(), [&](const auto& candidate) {
      return jobs[i].parent != nullptr && jobs[candidate.front()].parent == jobs[i].parent;
    });
    if (lane == lanes.end()) {
      lanes.push_back({i});
    } else {
      lane->push_back(i);
    }
  }
  return lanes;
}

// Runs the jobs, a lane in order and all lanes at once, and waits for all.
ncclResult_t RunJobs(const std::vector<Job>& jobs) {
  if (jobs.size() == 1) return jobs.front().run();
  std::vector<std::thread> threads;
  std::vector<ncclResult_t> results(jobs.size(), ncclSuccess);
  for (std::vector<size_t>& lane : Lanes(jobs)) {
    threads.push_back(QuietThread([&jobs, &results, lane = std::move(lane)] {
      for (const size_t i : lane) results[i] = jobs[i].run();
    }));
  }
  for (std::thread& thread : threads) thread.join();
  for (const ncclResult_t result : results) {
    if (result != ncclSuccess) return result;
  }
  return ncclSuccess;
}

void SetStates(const std::vector<Job>& jobs, ncclResult_t state) {
  for (const Job& job : jobs) {
    if (job.comm != nullptr) job.comm->SetState(state);
  }
}

ncclResult_t StartJobs(std::vector<Job> jobs) {
  const bool blocking = std::all_of(jobs.begin(), jobs.end(), [](const Job& job) {
    return job.comm == nullptr || job.comm->blocking;
  });
  SetStates(jobs, ncclInProgress);
  if (!blocking) {
    StartQuietThread([jobs = std::move(jobs)] { SetStates(jobs, RunJobs(jobs)); });
    return ncclInProgress;
  }
  const ncclResult_t result = RunJobs(jobs);
  SetStates(jobs, result);
  return result;
}

// Ends a level; true if it was the outermost, and then `*ended` is the group.
bool EndLevel(Group* ended) {
  Group& group = ThreadGroup();
  if (--group.depth > 0) return false;
  std::swap(*ended, group);
  return true;
}

}  // namespace

void GroupStart() { ++ThreadGroup().depth; }

ncclResult_t GroupEnd() {
  if (ThreadGroup().depth == 0) {
    return Warn(ncclInvalidUsage, "ncclGroupEnd: not in a group call.");
  }
  Group group;
  if (!EndLevel(&group)) return ncclSuccess;
  if (group.error != ncclSuccess) return group.error;
  if (!group.jobs.empty() && !group.calls.empty()) {
    return Warn(ncclInvalidUsage, "a group has both collectives and communicator calls");
  }
  if (!group.jobs.empty()) return StartJobs(std::move(group.jobs));
  if (group.calls.empty()) return ncclSuccess;
  ProfileGroupEnd();
  const ncclResult_t launched = Launch(std::move(group.calls));
  ProfileGroupEnded();
  return launched;
}

ncclResult_t GroupDrop() {
  if (ThreadGroup().depth == 0) return ncclInvalidUsage;
  Group group;
  EndLevel(&group);
  return group.error;
}

ncclResult_t Fail(ncclResult_t result) {
  Group& group = ThreadGroup();
  if (group.depth > 0 && result != ncclSuccess && result != ncclInProgress) group.error = result;
  return result;
}

ncclResult_t Submit(ncclComm_t handle, Call call, cudaStream_t stream) {
  const CommRef comm = Comm::Find(handle);
  if (comm == nullptr) return Fail(Warn(ncclInvalidArgument, "the communicator is NULL or gone"));
  const ncclResult_t ready = comm->EnsureReady();
  if (ready != ncclSuccess) return Fail(ready);
  if (comm->revoked || comm->finalized) {
    return Fail(Warn(ncclInvalidUsage, "the communicator was revoked or finalized"));
  }
  const ncclResult_t checked = CheckCall(*comm, &call);
  if (checked != ncclSuccess) return Fail(checked);
  if (call.count == 0 && !call.is_p2p()) return ncclSuccess;
  Pending pending{comm, nullptr, std::move(call)};
  if (FindStream(comm->device, stream, &pending.stream) != CUDA_SUCCESS) {
    return Fail(Warn(ncclUnhandledCudaError, "invalid stream"));
  }
  GroupStart();
  ProfileCall(*comm, pending.call, stream, IsCaptured(pending.stream));
  ThreadGroup().calls.push_back(std::move(pending));
  return GroupEnd();
}

ncclResult_t SubmitJob(Job job) {
  GroupStart();
  ThreadGroup().jobs.push_back(std::move(job));
  return GroupEnd();
}

}  // namespace rollcall::sim
