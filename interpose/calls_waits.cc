// The wrappers of CUDA calls in which a host thread waits for the GPU.
#include "interpose/real.h"
#include "interpose/record.h"

using rollcall::ObserveWait;
using rollcall::Op;

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
