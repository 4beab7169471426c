// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/cuda/memory.h"

#include <stdlib.h>
#include <string.h>

#include <map>
#include <mutex>
#include <vector>

#include "tests/sim/cuda/device.h"
#include "tests/sim/made_once.h"

namespace rollcall::sim {
namespace {

constexpr size_t kAlignment = 4096;  // windows of NCCL ask for it

struct Allocations {
  std::mutex mutex;
  std::map<uintptr_t, MemoryInfo> by_end;  // key: one past the last byte
};

Allocations& AllAllocations() { return MadeOnce<Allocations>(); }

void Note(MemoryKind kind, int device, void* base, size_t size) {
  std::lock_guard lock(AllAllocations().mutex);
  const auto begin = reinterpret_cast<uintptr_t>(base);
  AllAllocations().by_end[begin + size] = {kind, device, base, size};
}

bool Forget(void* base, bool registered) {
  std::lock_guard lock(AllAllocations().mutex);
  auto& all = AllAllocations().by_end;
  const auto found = all.upper_bound(reinterpret_cast<uintptr_t>(base));
  if (found == all.end() || found->second.base != base) return false;
  if ((found->second.kind == MemoryKind::kRegistered) != registered) return false;
  all.erase(found);
  return true;
}

}  // namespace

CUresult Allocate(MemoryKind kind, int device, size_t size, void** memory) {
  if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *memory = nullptr;
  if (size == 0) return kind == MemoryKind::kDevice ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  if (posix_memalign(memory, kAlignment, size) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  Note(kind, device, *memory, size);
  return CUDA_SUCCESS;
}

CUresult Free(void* memory) {
  if (memory == nullptr) return CUDA_SUCCESS;
  const MemoryInfo info = Describe(memory);
  if (info.base != memory || info.kind == MemoryKind::kRegistered) return CUDA_ERROR_INVALID_VALUE;
  SynchronizeDevice(info.device);
  if (!Forget(memory, false)) return CUDA_ERROR_INVALID_VALUE;
  free(memory);
  return CUDA_SUCCESS;
}

CUresult RegisterHost(void* memory, size_t size) {
  if (memory == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  const auto last = static_cast<const char*>(memory) + size - 1;
  if (Describe(memory).size != 0 || Describe(last).size != 0) {
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  }
  Note(MemoryKind::kRegistered, 0, memory, size);
  return CUDA_SUCCESS;
}

CUresult UnregisterHost(void* memory) {
  return Forget(memory, true) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

MemoryInfo Describe(const void* memory) {
  std::lock_guard lock(AllAllocations().mutex);
  const auto address = reinterpret_cast<uintptr_t>(memory);
  const auto found = AllAllocations().by_end.upper_bound(address);
  if (found == AllAllocations().by_end.end()) return {};
  return reinterpret_cast<uintptr_t>(found->second.base) <= address ? found->second : MemoryInfo{};
}

void CopyAsync(void* to, const void* from, size_t size, const StreamRef& stream) {
  if (size == 0) return;
  if (Describe(to).kind == MemoryKind::kUnknown) {
    WaitFor(Enqueue(stream, [=] { memmove(to, from, size); }));
  } else if (Describe(from).kind == MemoryKind::kUnknown) {
    const char* bytes = static_cast<const char*>(from);
    Enqueue(stream, [to, copy = std::vector<char>(bytes, bytes + size)] {
      memcpy(to, copy.data(), copy.size());
    });
  } else {
    Enqueue(stream, [=] { memmove(to, from, size); });
  }
}

void CopyOnLegacy(void* to, const void* from, size_t size, int device) {
  const Point copied = Enqueue(DeviceAt(device).legacy, [=] { memmove(to, from, size); });
  const bool within =
      Describe(to).kind == MemoryKind::kDevice && Describe(from).kind == MemoryKind::kDevice;
  if (!within) WaitFor(copied);
}

void FillAsync(void* memory, uint32_t value, int width, size_t count, const StreamRef& stream) {
  if (count == 0) return;
  Enqueue(stream, [=] {
    char* at = static_cast<char*>(memory);
    if (width == 1) {
      memset(at, static_cast<int>(value), count);
      return;
    }
    for (size_t i = 0; i < count; ++i) memcpy(at + i * width, &value, width);
  });
}

size_t MemoryInUse(int device) {
  std::lock_guard lock(AllAllocations().mutex);
  size_t sum = 0;
  for (const auto& [end, info] : AllAllocations().by_end) {
    if (info.kind == MemoryKind::kDevice && info.device == device) sum += info.size;
  }
  return sum;
}

}  // namespace rollcall::sim
