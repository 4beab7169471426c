// SPDX-License-Identifier: Apache-2.0
// The public functions that answer queries, register memory and make reductions.
#include <nccl.h>
#include <string.h>

#include "tests/sim/cuda/device.h"
#include "tests/sim/cuda/memory.h"
#include "tests/sim/nccl/comm.h"
#include "tests/sim/nccl/export.h"
#include "tests/sim/nccl/group.h"
#include "tests/sim/nccl/reduce.h"
#include "tests/sim/nccl/warn.h"

using rollcall::sim::Comm;
using rollcall::sim::CommRef;
using rollcall::sim::Warn;

namespace {

namespace sim = rollcall::sim;

// Sets `*to` to a number that a living communicator has.
template <typename Get>
ncclResult_t Answer(ncclComm_t handle, int* to, Get get) {
  const CommRef comm = Comm::Find(handle);
  if (comm == nullptr || to == nullptr) return Warn(ncclInvalidArgument, "an argument is NULL");
  *to = get(*comm);
  return ncclSuccess;
}

// A registration is something to hand back, no more.
void* NewRegistration() { return new char; }
void DeleteRegistration(void* handle) { delete static_cast<char*>(handle); }

}  // namespace

ncclResult_t ncclGetVersion(int* version) {
  if (version == nullptr) return ncclInvalidArgument;
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
SIM_EXPORT(ncclGetVersion)

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError:
      return "internal error - please report this issue to the NCCL developers";
    case ncclInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}
SIM_EXPORT(ncclGetErrorString)

const char* ncclGetLastError(ncclComm_t) { return rollcall::sim::LastWarning(); }
SIM_EXPORT(ncclGetLastError)

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 24, 0)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
void ncclResetDebugInit() {}
SIM_EXPORT(ncclResetDebugInit)
#pragma GCC diagnostic pop
#endif

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  return Answer(comm, count, [](const Comm& found) { return found.nranks; });
}
SIM_EXPORT(ncclCommCount)

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  return Answer(comm, device, [](const Comm& found) { return found.device; });
}
SIM_EXPORT(ncclCommCuDevice)

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  return Answer(comm, rank, [](const Comm& found) { return found.rank; });
}
SIM_EXPORT(ncclCommUserRank)

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t dtype,
                                      ncclScalarResidence_t residence, ncclComm_t handle) {
  const CommRef comm = Comm::Find(handle);
  const size_t size = rollcall::sim::ElementSize(dtype);
  if (comm == nullptr || op == nullptr || scalar == nullptr || size == 0) {
    return Warn(ncclInvalidArgument, "invalid argument of ncclRedOpCreatePreMulSum");
  }
  sim::PreMultiply reduction{dtype, nullptr, {}};
  if (residence == ncclScalarDevice) {
    reduction.device_scalar = scalar;
  } else {
    memcpy(reduction.scalar, scalar, size);
  }
  *op = comm->AddReduction(reduction);
  return ncclSuccess;
}
SIM_EXPORT(ncclRedOpCreatePreMulSum)

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t handle) {
  const CommRef comm = Comm::Find(handle);
  if (comm == nullptr || op < ncclNumOps || !comm->RemoveReduction(op)) {
    return Warn(ncclInvalidArgument, "operator was not created by this communicator");
  }
  return ncclSuccess;
}
SIM_EXPORT(ncclRedOpDestroy)

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)
ncclResult_t ncclMemAlloc(void** memory, size_t size) {
  const int device = sim::RequireDevice();
  if (memory == nullptr || size == 0) return Warn(ncclInvalidArgument, "nothing to allocate");
  if (device < 0) return ncclUnhandledCudaError;
  const CUresult result = sim::Allocate(sim::MemoryKind::kDevice, device, size, memory);
  return result == CUDA_SUCCESS ? ncclSuccess : ncclUnhandledCudaError;
}
SIM_EXPORT(ncclMemAlloc)

ncclResult_t ncclMemFree(void* memory) {
  return sim::Free(memory) == CUDA_SUCCESS ? ncclSuccess : ncclInvalidArgument;
}
SIM_EXPORT(ncclMemFree)

ncclResult_t ncclCommRegister(const ncclComm_t comm, void* buffer, size_t, void** handle) {
  if (Comm::Find(comm) == nullptr || buffer == nullptr || handle == nullptr) {
    return ncclInvalidArgument;
  }
  *handle = NewRegistration();
  return ncclSuccess;
}
SIM_EXPORT(ncclCommRegister)

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void* handle) {
  if (Comm::Find(comm) == nullptr) return ncclInvalidArgument;
  DeleteRegistration(handle);
  return ncclSuccess;
}
SIM_EXPORT(ncclCommDeregister)
#endif

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
// A collective: waits until all ranks register.
ncclResult_t ncclCommWindowRegister(ncclComm_t handle, void* buffer, size_t size,
                                    ncclWindow_t* window, int) {
  const CommRef comm = Comm::Find(handle);
  if (comm == nullptr || buffer == nullptr || size == 0 || window == nullptr) {
    return ncclInvalidArgument;
  }
  *window = static_cast<ncclWindow_t>(NewRegistration());
  return sim::SubmitJob({comm, comm, [comm] {
                           comm->Meet(sim::kWindowGate);
                           return ncclSuccess;
                         }});
}
SIM_EXPORT(ncclCommWindowRegister)

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
  if (Comm::Find(comm) == nullptr) return ncclInvalidArgument;
  DeleteRegistration(window);
  return ncclSuccess;
}
SIM_EXPORT(ncclCommWindowDeregister)
#endif
