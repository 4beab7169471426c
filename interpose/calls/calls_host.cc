// SPDX-License-Identifier: Apache-2.0
// The wrappers of calls that run on the host: those that all ranks of a communicator must make, and
// those that only the driver can block. Also of CUDA's and HIP's waits for the GPU.
#include "interpose/calls/observe.h"
#include "interpose/calls/side_channel.h"
#include "interpose/real.h"

using rollcall::CallInfo;
using rollcall::HostCallChannel;
using rollcall::kNoDtype;
using rollcall::kNoPeer;
using rollcall::kNoReduction;
using rollcall::ObserveCall;
using rollcall::ObserveLocal;
using rollcall::ObserveWait;
using rollcall::Op;

#define CALLER __builtin_return_address(0)

extern "C" ROLLCALL_EXPORT ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* buff,
                                                               size_t size, ncclWindow_t* win,
                                                               int winFlags) {
  const CallInfo info = {Op::kCommWindowRegister, kNoDtype, kNoReduction, kNoPeer, 0, nullptr};
  return ObserveCall(ROLLCALL_REAL(ncclCommWindowRegister), HostCallChannel(comm), info, CALLER,
                     comm, buff, size, win, winFlags);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclDevCommCreate(ncclComm_t comm, const void* requirements,
                                                          void* devComm) {
  const CallInfo info = {Op::kDevCommCreate, kNoDtype, kNoReduction, kNoPeer, 0, nullptr};
  return ObserveCall(ROLLCALL_REAL(ncclDevCommCreate), HostCallChannel(comm), info, CALLER, comm,
                     requirements, devComm);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclCommWindowDeregister(ncclComm_t comm,
                                                                 ncclWindow_t win) {
  return ObserveLocal(ROLLCALL_REAL(ncclCommWindowDeregister), Op::kCommWindowDeregister, comm,
                      comm, win);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const void* devComm) {
  return ObserveLocal(ROLLCALL_REAL(ncclDevCommDestroy), Op::kDevCommDestroy, comm, comm, devComm);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclCommRegister(const ncclComm_t comm, void* buff,
                                                         size_t size, void** handle) {
  return ObserveLocal(ROLLCALL_REAL(ncclCommRegister), Op::kCommRegister, comm, comm, buff, size,
                      handle);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclCommDeregister(const ncclComm_t comm, void* handle) {
  return ObserveLocal(ROLLCALL_REAL(ncclCommDeregister), Op::kCommDeregister, comm, comm, handle);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclMemAlloc(void** ptr, size_t size) {
  return ObserveLocal(ROLLCALL_REAL(ncclMemAlloc), Op::kMemAlloc, nullptr, ptr, size);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclMemFree(void* ptr) {
  return ObserveLocal(ROLLCALL_REAL(ncclMemFree), Op::kMemFree, nullptr, ptr);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags) {
  return ObserveLocal(ROLLCALL_REAL(ncclCommSuspend), Op::kCommSuspend, comm, comm, flags);
}

extern "C" ROLLCALL_EXPORT ncclResult_t ncclCommResume(ncclComm_t comm) {
  return ObserveLocal(ROLLCALL_REAL(ncclCommResume), Op::kCommResume, comm, comm);
}

extern "C" ROLLCALL_EXPORT cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return ObserveWait(ROLLCALL_REAL(cudaStreamSynchronize), Op::kcudaStreamSynchronize, stream,
                     stream);
}

extern "C" ROLLCALL_EXPORT cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return ObserveWait(ROLLCALL_REAL(cudaEventSynchronize), Op::kcudaEventSynchronize, event, event);
}

extern "C" ROLLCALL_EXPORT cudaError_t cudaDeviceSynchronize() {
  return ObserveWait(ROLLCALL_REAL(cudaDeviceSynchronize), Op::kcudaDeviceSynchronize, nullptr);
}

extern "C" ROLLCALL_EXPORT cudaError_t cudaMemcpy(void* dst, const void* src, size_t count,
                                                  enum cudaMemcpyKind kind) {
  return ObserveWait(ROLLCALL_REAL(cudaMemcpy), Op::kcudaMemcpy, nullptr, dst, src, count, kind);
}

extern "C" ROLLCALL_EXPORT CUresult cuStreamSynchronize(CUstream stream) {
  return ObserveWait(ROLLCALL_REAL(cuStreamSynchronize), Op::kcuStreamSynchronize, stream, stream);
}

extern "C" ROLLCALL_EXPORT CUresult cuEventSynchronize(CUevent event) {
  return ObserveWait(ROLLCALL_REAL(cuEventSynchronize), Op::kcuEventSynchronize, event, event);
}

extern "C" ROLLCALL_EXPORT CUresult cuCtxSynchronize() {
  return ObserveWait(ROLLCALL_REAL(cuCtxSynchronize), Op::kcuCtxSynchronize, nullptr);
}

extern "C" ROLLCALL_EXPORT int hipStreamSynchronize(void* stream) {
  return ObserveWait(ROLLCALL_REAL(hipStreamSynchronize), Op::khipStreamSynchronize, stream,
                     stream);
}

extern "C" ROLLCALL_EXPORT int hipEventSynchronize(void* event) {
  return ObserveWait(ROLLCALL_REAL(hipEventSynchronize), Op::khipEventSynchronize, event, event);
}

extern "C" ROLLCALL_EXPORT int hipDeviceSynchronize() {
  return ObserveWait(ROLLCALL_REAL(hipDeviceSynchronize), Op::khipDeviceSynchronize, nullptr);
}

extern "C" ROLLCALL_EXPORT int hipMemcpy(void* dst, const void* src, size_t sizeBytes, int kind) {
  return ObserveWait(ROLLCALL_REAL(hipMemcpy), Op::khipMemcpy, nullptr, dst, src, sizeBytes, kind);
}
