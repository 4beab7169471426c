// SPDX-License-Identifier: Apache-2.0
// The simulated CUDA runtime: kernels. A program can register and launch them. A
// kernel takes its place in its stream, and does nothing.
#include "tests/sim/cudart/runtime.h"

namespace {

namespace sim = rollcall::sim;

struct CallConfiguration {
  dim3 grid, block;
  size_t shared_memory;
  cudaStream_t stream;
};
thread_local CallConfiguration pushed_call;

cudaError_t Launch(cudaStream_t stream) {
  return sim::runtime::OnStream(stream, [](const sim::StreamRef& on) {
    sim::Enqueue(on, [] {});
    return CUDA_SUCCESS;
  });
}

}  // namespace

extern "C" {

cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, size_t, cudaStream_t stream) {
  return Launch(stream);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void*, void**) {
  return Launch(config->stream);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  *attributes = {};
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }

// The functions that nvcc calls from every program with kernels. The first group registers the
// program's code, which the simulation does not need.
void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*,
                            dim3*, int*) {}
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}
void __cudaRegisterManagedVar(void**, void**, char*, const char*, int, size_t, int, int) {}
char __cudaInitModule(void**) { return 1; }

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_memory,
                                     CUstream_st* stream) {
  pushed_call = {grid, block, shared_memory, stream};
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_memory,
                                       void* stream) {
  *grid = pushed_call.grid;
  *block = pushed_call.block;
  *shared_memory = pushed_call.shared_memory;
  *static_cast<cudaStream_t*>(stream) = pushed_call.stream;
  return cudaSuccess;
}

#if CUDART_VERSION >= 12000
cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  return cudaGetKernel(kernel, function);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t stream) {
  return Launch(stream);
}
#endif

}  // extern "C"
