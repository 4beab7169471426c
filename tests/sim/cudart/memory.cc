// SPDX-License-Identifier: Apache-2.0
// The simulated CUDA runtime: memory.
#include "tests/sim/cuda/memory.h"

#include "tests/sim/cudart/runtime.h"

namespace {

namespace sim = rollcall::sim;
using sim::runtime::Note;
using sim::runtime::OnStream;

cudaError_t Allocate(sim::MemoryKind kind, void** memory, size_t size) {
  int device = 0;
  const cudaError_t found = sim::runtime::FindDevice(&device);
  return found != cudaSuccess ? Note(found) : Note(sim::Allocate(kind, device, size, memory));
}

cudaError_t Free(void* memory) {
  return sim::ForkedAway() ? Note(cudaErrorInitializationError) : Note(sim::Free(memory));
}

cudaError_t Copy(void* to, const void* from, size_t size, cudaStream_t stream) {
  if (size != 0 && (to == nullptr || from == nullptr)) return Note(cudaErrorInvalidValue);
  return OnStream(stream, [=](const sim::StreamRef& on) {
    sim::CopyAsync(to, from, size, on);
    return CUDA_SUCCESS;
  });
}

cudaError_t Fill(void* memory, int value, size_t size, cudaStream_t stream) {
  if (size != 0 && memory == nullptr) return Note(cudaErrorInvalidValue);
  return OnStream(stream, [=](const sim::StreamRef& on) {
    sim::FillAsync(memory, static_cast<unsigned char>(value), 1, size, on);
    return CUDA_SUCCESS;
  });
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** memory, size_t size) {
  return Allocate(sim::MemoryKind::kDevice, memory, size);
}

cudaError_t cudaMallocManaged(void** memory, size_t size, unsigned) {
  return Allocate(sim::MemoryKind::kPinned, memory, size);
}

cudaError_t cudaFree(void* memory) { return Free(memory); }

cudaError_t cudaMallocAsync(void** memory, size_t size, cudaStream_t) {
  return Allocate(sim::MemoryKind::kDevice, memory, size);
}

cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
  return OnStream(stream, [=](const sim::StreamRef& on) {
    sim::WaitFor(sim::StreamTail(on));
    return sim::Free(memory);
  });
}

cudaError_t cudaHostAlloc(void** memory, size_t size, unsigned) {
  return Allocate(sim::MemoryKind::kPinned, memory, size);
}

cudaError_t cudaMallocHost(void** memory, size_t size) {
  return Allocate(sim::MemoryKind::kPinned, memory, size);
}

cudaError_t cudaFreeHost(void* memory) { return Free(memory); }

cudaError_t cudaHostRegister(void* memory, size_t size, unsigned) {
  return Note(sim::RegisterHost(memory, size));
}

cudaError_t cudaHostUnregister(void* memory) { return Note(sim::UnregisterHost(memory)); }

cudaError_t cudaHostGetDevicePointer(void** device, void* memory, unsigned) {
  const sim::MemoryKind kind = sim::Describe(memory).kind;
  if (kind == sim::MemoryKind::kUnknown) return Note(cudaErrorInvalidValue);
  *device = memory;
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* memory) {
  const sim::MemoryInfo info = sim::Describe(memory);
  *attributes = {};
  attributes->device = info.device;
  attributes->hostPointer = attributes->devicePointer = const_cast<void*>(memory);
  attributes->type = info.kind == sim::MemoryKind::kUnknown  ? cudaMemoryTypeUnregistered
                     : info.kind == sim::MemoryKind::kDevice ? cudaMemoryTypeDevice
                                                             : cudaMemoryTypeHost;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  int device = 0;
  const cudaError_t found = sim::runtime::FindDevice(&device);
  if (found != cudaSuccess) return Note(found);
  *total = sim::kMemoryPerDevice;
  *free = *total - sim::MemoryInUse(device);
  return cudaSuccess;
}

// Waits for the copy, as the real function does, except for copies within a device.
cudaError_t cudaMemcpy(void* to, const void* from, size_t size, cudaMemcpyKind) {
  if (size != 0 && (to == nullptr || from == nullptr)) return Note(cudaErrorInvalidValue);
  return OnStream(nullptr, [=](const sim::StreamRef& on) {
    sim::CopyOnLegacy(to, from, size, on->device);
    return CUDA_SUCCESS;
  });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, cudaMemcpyKind,
                            cudaStream_t stream) {
  return Copy(to, from, size, stream);
}

cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t size,
                                cudaStream_t stream) {
  return Copy(to, from, size, stream);
}

cudaError_t cudaMemset(void* memory, int value, size_t size) {
  return Fill(memory, value, size, nullptr);
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t size, cudaStream_t stream) {
  return Fill(memory, value, size, stream);
}

}  // extern "C"
