// SPDX-License-Identifier: Apache-2.0
// Memory of the simulated GPU: host memory, with the kind that the program asked
// for.
//
// The three simulated libraries use this code, which is in libcuda.so.1.
#pragma once

#include <cuda.h>

#include <cstddef>

#include "tests/sim/cuda/stream.h"

namespace rollcall::sim {

enum class MemoryKind { kUnknown, kDevice, kPinned, kRegistered };

struct MemoryInfo {
  MemoryKind kind = MemoryKind::kUnknown;  // unknown: pageable host memory
  int device = 0;
  void* base = nullptr;
  size_t size = 0;
};

CUresult Allocate(MemoryKind kind, int device, size_t size, void** memory);
// Waits for the device to become idle before it frees, as the real ones do.
CUresult Free(void* memory);
CUresult RegisterHost(void* memory, size_t size);
CUresult UnregisterHost(void* memory);
MemoryInfo Describe(const void* memory);

// Copies in stream order. Like the real copies, this function reads and writes pageable memory
// before it returns.
void CopyAsync(void* to, const void* from, size_t size, const StreamRef& stream);
// Copies and waits for the copy. A copy within the device only goes onto the stream.
void CopyOnLegacy(void* to, const void* from, size_t size, int device);
void FillAsync(void* memory, uint32_t value, int width, size_t count, const StreamRef& stream);

constexpr size_t kMemoryPerDevice = size_t{16} << 30;
size_t MemoryInUse(int device);

}  // namespace rollcall::sim
