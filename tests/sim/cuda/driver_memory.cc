// SPDX-License-Identifier: Apache-2.0
// The driver's functions for memory.
#include "tests/sim/cuda/entry.h"
#include "tests/sim/cuda/memory.h"

namespace {

namespace sim = rollcall::sim;

void* Pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

CUresult CopyNow(void* to, const void* from, size_t size) {
  if (sim::CurrentDevice() < 0) return CUDA_ERROR_INVALID_CONTEXT;
  sim::CopyOnLegacy(to, from, size, sim::CurrentDevice());
  return CUDA_SUCCESS;
}

CUresult Copy(void* to, const void* from, size_t size, CUstream handle) {
  SIM_STREAM(handle, stream);
  sim::CopyAsync(to, from, size, stream);
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuMemAlloc(CUdeviceptr* address, size_t size) {
  SIM_ENTER();
  if (sim::CurrentDevice() < 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (size == 0) return CUDA_ERROR_INVALID_VALUE;
  return sim::Allocate(sim::MemoryKind::kDevice, sim::CurrentDevice(), size,
                       reinterpret_cast<void**>(address));
}

CUresult cuMemFree(CUdeviceptr address) {
  SIM_ENTER();
  return sim::Free(Pointer(address));
}

CUresult cuMemHostAlloc(void** memory, size_t size, unsigned) {
  SIM_ENTER();
  if (sim::CurrentDevice() < 0) return CUDA_ERROR_INVALID_CONTEXT;
  return sim::Allocate(sim::MemoryKind::kPinned, sim::CurrentDevice(), size, memory);
}

CUresult cuMemFreeHost(void* memory) {
  SIM_ENTER();
  return sim::Free(memory);
}

CUresult cuMemHostRegister(void* memory, size_t size, unsigned) {
  SIM_ENTER();
  if (sim::CurrentDevice() < 0) return CUDA_ERROR_INVALID_CONTEXT;
  return sim::RegisterHost(memory, size);
}

CUresult cuMemHostUnregister(void* memory) {
  SIM_ENTER();
  return sim::UnregisterHost(memory);
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr* address, void* memory, unsigned flags) {
  SIM_ENTER();
  const sim::MemoryInfo info = sim::Describe(memory);
  if (flags != 0 || address == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (info.kind != sim::MemoryKind::kPinned && info.kind != sim::MemoryKind::kRegistered) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *address = reinterpret_cast<CUdeviceptr>(memory);
  return CUDA_SUCCESS;
}

CUresult cuMemGetInfo(size_t* free, size_t* total) {
  SIM_ENTER();
  if (sim::CurrentDevice() < 0) return CUDA_ERROR_INVALID_CONTEXT;
  *total = sim::kMemoryPerDevice;
  *free = *total - sim::MemoryInUse(sim::CurrentDevice());
  return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t size) {
  SIM_ENTER();
  return CopyNow(Pointer(to), from, size);
}

CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, size_t size) {
  SIM_ENTER();
  return CopyNow(to, Pointer(from), size);
}

CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t size) {
  SIM_ENTER();
  return CopyNow(Pointer(to), Pointer(from), size);
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t size, CUstream stream) {
  SIM_ENTER();
  return Copy(Pointer(to), from, size, stream);
}

CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t size, CUstream stream) {
  SIM_ENTER();
  return Copy(to, Pointer(from), size, stream);
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
  SIM_ENTER();
  return Copy(Pointer(to), Pointer(from), size, stream);
}

CUresult cuMemsetD8(CUdeviceptr address, unsigned char value, size_t count) {
  SIM_ENTER();
  SIM_STREAM(nullptr, stream);
  sim::FillAsync(Pointer(address), value, 1, count, stream);
  return CUDA_SUCCESS;
}

CUresult cuMemsetD8Async(CUdeviceptr address, unsigned char value, size_t count, CUstream handle) {
  SIM_ENTER();
  SIM_STREAM(handle, stream);
  sim::FillAsync(Pointer(address), value, 1, count, stream);
  return CUDA_SUCCESS;
}

CUresult cuMemsetD32Async(CUdeviceptr address, unsigned value, size_t count, CUstream handle) {
  SIM_ENTER();
  SIM_STREAM(handle, stream);
  sim::FillAsync(Pointer(address), value, 4, count, stream);
  return CUDA_SUCCESS;
}

}  // extern "C"
