// SPDX-License-Identifier: Apache-2.0
// The public functions that create and end communicators.
#include <nccl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <set>

#include "tests/sim/cuda/device.h"
#include "tests/sim/nccl/export.h"
#include "tests/sim/nccl/group.h"
#include "tests/sim/nccl/lifecycle.h"
#include "tests/sim/nccl/warn.h"
#include "tests/support/nccl_grow.h"

using rollcall::sim::Comm;
using rollcall::sim::CommRef;
using rollcall::sim::Fail;
using rollcall::sim::Warn;

namespace {

namespace sim = rollcall::sim;

// Calls action(comm) if the handle is a living communicator's.
template <typename Action>
ncclResult_t On(ncclComm_t handle, Action action) {
  const CommRef comm = Comm::Find(handle);
  if (comm == nullptr) return Fail(Warn(ncclInvalidArgument, "the communicator is NULL or gone"));
  return Fail(action(comm));
}

ncclResult_t CheckDevices(int count, const int* devices) {
  if (count <= 0 || count > sim::DeviceCount()) {
    return Warn(ncclInvalidArgument, "Invalid device count requested : %d", count);
  }
  std::set<int> seen;
  for (int i = 0; devices != nullptr && i < count; ++i) {
    if (devices[i] < 0 || devices[i] >= sim::DeviceCount()) return ncclUnhandledCudaError;
    if (!seen.insert(devices[i]).second) return ncclInvalidUsage;
  }
  return ncclSuccess;
}

}  // namespace

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  if (id == nullptr) return Warn(ncclInvalidArgument, "GetUniqueId argument is NULL");
  memset(id, 0, sizeof(*id));
  const char* fixed = getenv("NCCL_COMM_ID");
  if (fixed != nullptr) {
    strncpy(id->internal, fixed, sizeof(id->internal) - 1);
    return ncclSuccess;
  }
  constexpr size_t kRandomBytes = 32;
  return getrandom(id->internal, kRandomBytes, 0) == kRandomBytes ? ncclSuccess : ncclSystemError;
}
SIM_EXPORT(ncclGetUniqueId)

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId id, int rank) {
  return Fail(
      sim::InitRank(comm, nranks, sim::NameOfIds(&id, 1), rank, sim::RequireDevice(), nullptr));
}
SIM_EXPORT(ncclCommInitRank)

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  return Fail(
      sim::InitRank(comm, nranks, sim::NameOfIds(&id, 1), rank, sim::RequireDevice(), config));
}
SIM_EXPORT(ncclCommInitRankConfig)

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 23, 0)
ncclResult_t ncclCommInitRankScalable(ncclComm_t* comm, int nranks, int rank, int id_count,
                                      ncclUniqueId* ids, ncclConfig_t* config) {
  if (id_count < 1 || id_count > nranks || ids == nullptr) {
    return Fail(Warn(ncclInvalidArgument, "improper number of unique ids: %d", id_count));
  }
  return Fail(sim::InitRank(comm, nranks, sim::NameOfIds(ids, id_count), rank, sim::RequireDevice(),
                            config));
}
SIM_EXPORT(ncclCommInitRankScalable)
#endif

// Gets its id from the public function, as the real function does.
ncclResult_t ncclCommInitAll(ncclComm_t* comms, int count, const int* devices) {
  if (comms == nullptr) return Warn(ncclInvalidArgument, "comms is NULL");
  ncclResult_t result = CheckDevices(count, devices);
  if (result != ncclSuccess) return result;
  ncclUniqueId id;
  result = ncclGetUniqueId(&id);
  if (result != ncclSuccess) return result;
  sim::GroupStart();
  for (int i = 0; i < count; ++i) {
    const int device = devices == nullptr ? i : devices[i];
    Fail(sim::InitRank(&comms[i], count, sim::NameOfIds(&id, 1), i, device, nullptr));
  }
  return sim::GroupEnd();
}
SIM_EXPORT(ncclCommInitAll)

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm,
                           ncclConfig_t* config) {
  return On(comm,
            [&](const CommRef& parent) { return sim::Split(parent, color, key, newcomm, config); });
}
SIM_EXPORT(ncclCommSplit)

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
ncclResult_t ncclCommShrink(ncclComm_t comm, int* excluded, int excluded_count, ncclComm_t* newcomm,
                            ncclConfig_t* config, int flags) {
  return On(comm, [&](const CommRef& parent) {
    if (newcomm == nullptr || excluded == nullptr || excluded_count <= 0 ||
        excluded_count >= parent->nranks) {
      return Warn(ncclInvalidArgument, "invalid list of %d excluded ranks", excluded_count);
    }
    for (int i = 0; i < excluded_count; ++i) {
      if (excluded[i] == parent->rank) return Warn(ncclInvalidArgument, "excluded itself");
    }
    return sim::Shrink(parent, {excluded, excluded + excluded_count}, newcomm, config, flags);
  });
}
SIM_EXPORT(ncclCommShrink)
#endif

ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId* id) {
  if (id == nullptr) return Fail(Warn(ncclInvalidArgument, "uniqueId is NULL"));
  return On(comm, [&](const CommRef& parent) {
    *id = sim::GrowId(*parent);
    return parent->EnsureReady();
  });
}
SIM_EXPORT(ncclCommGetUniqueId)

ncclResult_t ncclCommGrow(ncclComm_t comm, int nranks, const ncclUniqueId* id, int rank,
                          ncclComm_t* newcomm, ncclConfig_t* config) {
  if (newcomm == nullptr) return Fail(Warn(ncclInvalidArgument, "newcomm is NULL"));
  *newcomm = nullptr;
  if (comm == nullptr) {
    if (id == nullptr) return Fail(Warn(ncclInvalidArgument, "new ranks must pass a uniqueId"));
    return Fail(
        sim::InitRank(newcomm, nranks, sim::NameOfIds(id, 1), rank, sim::RequireDevice(), config));
  }
  return On(comm, [&](const CommRef& parent) {
    if (rank != -1) return Warn(ncclInvalidArgument, "existing ranks must pass rank -1");
    return sim::Grow(parent, nranks, newcomm, config);
  });
}
SIM_EXPORT(ncclCommGrow)

ncclResult_t ncclCommFinalize(ncclComm_t comm) { return On(comm, sim::Finalize); }
SIM_EXPORT(ncclCommFinalize)

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return comm == nullptr ? ncclSuccess : On(comm, sim::Destroy);
}
SIM_EXPORT(ncclCommDestroy)

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return comm == nullptr ? ncclSuccess : On(comm, sim::Abort);
}
SIM_EXPORT(ncclCommAbort)

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 7)
ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags) {
  if (flags != 0) return Warn(ncclInvalidArgument, "revokeFlags must be NCCL_REVOKE_DEFAULT");
  return On(comm, sim::Revoke);
}
SIM_EXPORT(ncclCommRevoke)
#endif

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  if (error == nullptr) return Warn(ncclInvalidArgument, "asyncError is NULL");
  return On(comm, [=](const CommRef& found) { return sim::AsyncError(found, error); });
}
SIM_EXPORT(ncclCommGetAsyncError)
