// SPDX-License-Identifier: Apache-2.0
// Shared by all functions of the simulated CUDA runtime: the thread's last error,
// and the thread's device, which is device 0 until the thread chooses one.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "tests/sim/cuda/device.h"

namespace rollcall::sim::runtime {

inline thread_local cudaError_t last_error = cudaSuccess;

// Stores an error for cudaGetLastError(). The runtime's numbers equal the driver's.
inline cudaError_t Note(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}
inline cudaError_t Note(CUresult result) { return Note(static_cast<cudaError_t>(result)); }

inline cudaError_t FindDevice(int* device) {
  if (ForkedAway()) return cudaErrorInitializationError;
  *device = RequireDevice();
  return *device < 0 ? cudaErrorNoDevice : cudaSuccess;
}

inline cudaError_t Find(cudaStream_t handle, StreamRef* stream) {
  int device = 0;
  const cudaError_t found = FindDevice(&device);
  if (found != cudaSuccess) return found;
  return static_cast<cudaError_t>(FindStream(device, handle, stream));
}

// Calls `action(stream)` with the stream that the handle means.
template <typename Action>
cudaError_t OnStream(cudaStream_t handle, Action action) {
  StreamRef stream;
  const cudaError_t found = Find(handle, &stream);
  return Note(found != cudaSuccess ? found : static_cast<cudaError_t>(action(stream)));
}

}  // namespace rollcall::sim::runtime
