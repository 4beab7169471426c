// SPDX-License-Identifier: Apache-2.0
// The host functions of NCCL's device API. There is no device here that could
// run such kernels: what would prepare them fails, what only counts answers.
// Declared here and not by nccl_device.h, which wants a CUDA compiler.
#include <nccl.h>

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
#include "tests/sim/nccl/comm.h"
#include "tests/sim/nccl/export.h"
#include "tests/sim/nccl/warn.h"

using rollcall::sim::Comm;
using rollcall::sim::CommRef;

extern "C" {
struct ncclTeam {
  int ranks, rank, stride;
};
ncclResult_t ncclDevCommCreate(ncclComm_t, const void*, void*);
ncclResult_t ncclDevCommDestroy(ncclComm_t, const void*);
ncclTeam ncclTeamWorld(ncclComm_t);
ncclTeam ncclTeamLsa(ncclComm_t);
ncclTeam ncclTeamRail(ncclComm_t);
int ncclTeamRankToWorld(ncclComm_t, ncclTeam, int);
int ncclTeamRankToLsa(ncclComm_t, ncclTeam, int);
ncclResult_t ncclLsaBarrierCreateRequirement(ncclTeam, int, void*, void*);
ncclResult_t ncclGinBarrierCreateRequirement(ncclComm_t, ncclTeam, int, void*, void*);
ncclResult_t ncclLLA2ACreateRequirement(int, int, void*, void*);
int ncclLLA2ACalcSlots(int, int);
}

ncclResult_t ncclDevCommCreate(ncclComm_t, const void*, void*) {
  return rollcall::sim::Warn(ncclInvalidUsage, "the simulated NCCL has no device API");
}
SIM_EXPORT(ncclDevCommCreate)

ncclResult_t ncclDevCommDestroy(ncclComm_t, const void*) { return ncclInvalidUsage; }
SIM_EXPORT(ncclDevCommDestroy)

ncclTeam ncclTeamWorld(ncclComm_t handle) {
  const CommRef comm = Comm::Find(handle);
  return comm == nullptr ? ncclTeam{0, 0, 1} : ncclTeam{comm->nranks, comm->rank, 1};
}
SIM_EXPORT(ncclTeamWorld)

// All ranks are on one host, so they reach each other's memory.
ncclTeam ncclTeamLsa(ncclComm_t handle) { return ncclTeamWorld(handle); }
SIM_EXPORT(ncclTeamLsa)

ncclTeam ncclTeamRail(ncclComm_t handle) {
  const CommRef comm = Comm::Find(handle);
  return {1, 0, comm == nullptr ? 1 : comm->nranks};
}
SIM_EXPORT(ncclTeamRail)

int ncclTeamRankToWorld(ncclComm_t comm, ncclTeam team, int rank) {
  return ncclTeamWorld(comm).rank + (rank - team.rank) * team.stride;
}
SIM_EXPORT(ncclTeamRankToWorld)

int ncclTeamRankToLsa(ncclComm_t comm, ncclTeam team, int rank) {
  return ncclTeamRankToWorld(comm, team, rank);
}
SIM_EXPORT(ncclTeamRankToLsa)

ncclResult_t ncclLsaBarrierCreateRequirement(ncclTeam, int, void*, void*) {
  return ncclInvalidUsage;
}
SIM_EXPORT(ncclLsaBarrierCreateRequirement)

ncclResult_t ncclGinBarrierCreateRequirement(ncclComm_t, ncclTeam, int, void*, void*) {
  return ncclInvalidUsage;
}
SIM_EXPORT(ncclGinBarrierCreateRequirement)

ncclResult_t ncclLLA2ACreateRequirement(int, int, void*, void*) { return ncclInvalidUsage; }
SIM_EXPORT(ncclLLA2ACreateRequirement)

int ncclLLA2ACalcSlots(int, int) { return 0; }
SIM_EXPORT(ncclLLA2ACalcSlots)
#endif
