// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/nccl/lifecycle.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>

#include <algorithm>

#include "tests/sim/cuda/device.h"
#include "tests/sim/nccl/group.h"
#include "tests/sim/nccl/options.h"
#include "tests/sim/nccl/profiler.h"
#include "tests/sim/nccl/quiet_thread.h"
#include "tests/sim/nccl/warn.h"

namespace rollcall::sim {
namespace {

bool IsBlocking(const ncclConfig_t* config, bool otherwise) {
  // An older program's config may be shorter, but never ends before this field.
  if (config == nullptr || config->blocking == NCCL_CONFIG_UNDEF_INT) return otherwise;
  return config->blocking != 0;
}

ncclResult_t CheckConfig(const ncclConfig_t* config) {
  if (config == nullptr) return ncclSuccess;
  if (config->magic != 0xcafebeef) {
    return Warn(ncclInvalidArgument, "ncclConfig_t was not set by NCCL_CONFIG_INITIALIZER");
  }
  if (config->blocking != NCCL_CONFIG_UNDEF_INT && config->blocking != 0 && config->blocking != 1) {
    return Warn(ncclInvalidArgument, "invalid config blocking attribute value %d",
                config->blocking);
  }
  return ncclSuccess;
}

// The members of a split's part, in their new order.
std::vector<int> SplitMembers(const Comm& parent, int turn, int color) {
  std::vector<int> members;
  const auto choice = [&](int rank) -> const SplitChoice& {
    return parent.segment->area(rank).choices[turn % 2];
  };
  for (int rank = 0; rank < parent.nranks; ++rank) {
    if (choice(rank).color == color) members.push_back(rank);
  }
  std::stable_sort(members.begin(), members.end(),
                   [&](int a, int b) { return choice(a).key < choice(b).key; });
  return members;
}

int RankAmong(int rank, const std::vector<int>& members) {
  return static_cast<int>(std::find(members.begin(), members.end(), rank) - members.begin());
}

// Tells the parent's ranks the choice, learns theirs, and meets those of the
// same color.
ncclResult_t JoinPart(const CommRef& parent, int color, int key, ncclComm_t* handle,
                      bool blocking) {
  const int turn = parent->children++;
  parent->segment->area(parent->rank).choices[turn % 2] = {color, key};
  if (!parent->Meet(kSplitGate)) return ncclInternalError;
  if (color == NCCL_SPLIT_NOCOLOR) return ncclSuccess;
  const std::vector<int> members = SplitMembers(*parent, turn, color);
  const CommRef comm = Comm::Make(static_cast<int>(members.size()),
                                  RankAmong(parent->rank, members), parent->device, blocking);
  *handle = comm->handle();
  return comm->Join(
      HashName(parent->name + "/split" + std::to_string(turn) + "/" + std::to_string(color)));
}

bool PeerIsDead(const Comm& comm) {
  for (int rank = 0; rank < comm.nranks; ++rank) {
    const int pid = comm.segment->area(rank).pid.load();
    if (pid != 0 && kill(pid, 0) != 0 && errno == ESRCH) return true;
  }
  return false;
}

// One thread may destroy all ranks of its process in turn: only the last one waits, for the ranks
// of other processes.
ncclResult_t FinishFinalize(const CommRef& comm) {
  if (!comm->Drain() || !GetOptions().collective_destroy) return ncclSuccess;
  if (comm->LeavesLast()) {
    comm->Meet(kDestroyGate);
  } else {
    comm->ArriveAt(kDestroyGate);
  }
  return ncclSuccess;
}

}  // namespace

std::string NameOfIds(const ncclUniqueId* ids, int count) {
  return HashName(std::string(ids->internal, sizeof(ids->internal) * static_cast<size_t>(count)));
}

ncclResult_t InitRank(ncclComm_t* handle, int nranks, const std::string& name, int rank, int device,
                      const ncclConfig_t* config) {
  if (handle == nullptr) return Warn(ncclInvalidArgument, "comm is NULL");
  *handle = nullptr;
  if (nranks < 1 || rank < 0 || rank >= nranks) {
    return Warn(ncclInvalidArgument, "Invalid rank requested : %d/%d", rank, nranks);
  }
  const ncclResult_t checked = CheckConfig(config);
  if (checked != ncclSuccess) return checked;
  if (ForkedAway() || device < 0) return Warn(ncclUnhandledCudaError, "no CUDA device");
  const bool by_default = !EnvironmentIs("NCCL_COMM_BLOCKING", "0");
  const CommRef comm = Comm::Make(nranks, rank, device, IsBlocking(config, by_default));
  *handle = comm->handle();
  return SubmitJob({comm, nullptr, [comm, name] { return comm->Join(name); }});
}

ncclResult_t Split(const CommRef& parent, int color, int key, ncclComm_t* handle,
                   const ncclConfig_t* config) {
  if (handle == nullptr) return Warn(ncclInvalidArgument, "newcomm is NULL");
  *handle = nullptr;
  if (color < 0 && color != NCCL_SPLIT_NOCOLOR) {
    return Warn(ncclInvalidArgument, "invalid color %d", color);
  }
  const ncclResult_t checked = CheckConfig(config);
  if (checked != ncclSuccess) return checked;
  const ncclResult_t ready = parent->EnsureReady();
  if (ready != ncclSuccess) return ready;
  const bool blocking = IsBlocking(config, parent->blocking);
  return SubmitJob(
      {parent, parent, [=] { return JoinPart(parent, color, key, handle, blocking); }});
}

ncclResult_t Shrink(const CommRef& parent, std::vector<int> excluded, ncclComm_t* handle,
                    const ncclConfig_t* config, int flags) {
  *handle = nullptr;
  if (flags & 1) parent->Stop(false);  // NCCL_SHRINK_ABORT
  std::sort(excluded.begin(), excluded.end());
  std::vector<int> members;
  for (int rank = 0; rank < parent->nranks; ++rank) {
    if (!std::binary_search(excluded.begin(), excluded.end(), rank)) members.push_back(rank);
  }
  std::string name = parent->name + "/shrink" + std::to_string(parent->shrinks++);
  for (const int rank : excluded) name += "/" + std::to_string(rank);
  const CommRef comm =
      Comm::Make(static_cast<int>(members.size()), RankAmong(parent->rank, members), parent->device,
                 IsBlocking(config, parent->blocking));
  *handle = comm->handle();
  return SubmitJob({comm, parent, [comm, name] { return comm->Join(HashName(name)); }});
}

ncclUniqueId GrowId(const Comm& parent) {
  ncclUniqueId id = {};
  const std::string name = HashName(parent.name + "/grow" + std::to_string(parent.children));
  name.copy(id.internal, sizeof(id.internal));
  return id;
}

ncclResult_t Grow(const CommRef& parent, int nranks, ncclComm_t* handle,
                  const ncclConfig_t* config) {
  if (nranks <= parent->nranks) {
    return Warn(ncclInvalidArgument, "total ranks %d is less than current ranks %d", nranks,
                parent->nranks);
  }
  const ncclResult_t ready = parent->EnsureReady();
  if (ready != ncclSuccess) return ready;
  const ncclUniqueId id = GrowId(*parent);
  ++parent->children;
  const CommRef comm =
      Comm::Make(nranks, parent->rank, parent->device, IsBlocking(config, parent->blocking));
  *handle = comm->handle();
  return SubmitJob({comm, parent, [=] { return comm->Join(NameOfIds(&id, 1)); }});
}

ncclResult_t Finalize(const CommRef& comm) {
  const ncclResult_t ready = comm->EnsureReady();
  if (ready != ncclSuccess) return ready;
  if (comm->revoked) return Warn(ncclInvalidUsage, "ncclCommFinalize after ncclCommRevoke");
  if (comm->finalized.exchange(true)) {
    return Warn(ncclInvalidArgument, "the communicator was finalized before");
  }
  if (comm->blocking) return FinishFinalize(comm);
  comm->SetState(ncclInProgress);
  StartQuietThread([comm] { comm->SetState(FinishFinalize(comm)); });
  return ncclInProgress;
}

ncclResult_t Destroy(const CommRef& comm) {
  comm->EnsureReady();
  if (!comm->revoked && !comm->finalized.exchange(true)) FinishFinalize(comm);
  comm->Stop(true);  // a graph that is launched later finds nothing here
  ProfilerFinalize(comm.get());
  comm->Forget();
  return ncclSuccess;
}

ncclResult_t Abort(const CommRef& comm) {
  comm->Stop(true);
  comm->WaitUntilIdle();
  ProfilerFinalize(comm.get());
  comm->Forget();
  return ncclSuccess;
}

ncclResult_t Revoke(const CommRef& comm) {
  comm->revoked = true;
  comm->Stop(false);
  comm->WaitUntilIdle();
  return ncclSuccess;
}

ncclResult_t AsyncError(const CommRef& comm, ncclResult_t* error) {
  *error = comm->state();
  if (*error == ncclSuccess && GetOptions().peer_death_is_error && comm->segment != nullptr &&
      PeerIsDead(*comm)) {
    *error = ncclRemoteError;
  }
  return ncclSuccess;
}

}  // namespace rollcall::sim
