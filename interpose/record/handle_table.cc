// SPDX-License-Identifier: Apache-2.0
#include "interpose/record/handle_table.h"

#include "interpose/recorder.h"

namespace rollcall {
namespace {

// Open addressing. A handle of 0 means that the slot was never used, 1 that it was used and is free
// again.
constexpr uint32_t kHandleSlots = 4 * segment::kCommCapacity;
struct HandleSlot {
  std::atomic<uintptr_t> handle;
  std::atomic<uint32_t> comm;
};
HandleSlot handles[kHandleSlots];

uint32_t HandleHash(const void* handle) {
  return static_cast<uint32_t>(segment::Mix(0, reinterpret_cast<uintptr_t>(handle))) % kHandleSlots;
}

}  // namespace

void BindHandle(LocalComm* comm, const void* handle) {
  LocalComm* earlier = FindComm(handle);
  if (earlier != nullptr) ForgetHandle(earlier);
  const auto key = reinterpret_cast<uintptr_t>(handle);
  for (uint32_t i = 0, at = HandleHash(handle); i < kHandleSlots;
       ++i, at = (at + 1) % kHandleSlots) {
    uintptr_t seen = handles[at].handle.load(std::memory_order_relaxed);
    if (seen > 1) continue;
    // The claimed slot reads as "free again" until `comm` is set, so readers skip it.
    if (!handles[at].handle.compare_exchange_strong(seen, 1)) continue;
    handles[at].comm.store(comm->index, std::memory_order_relaxed);
    handles[at].handle.store(key, std::memory_order_release);
    comm->handle.store(handle, std::memory_order_release);
    return;
  }
}

void ForgetHandle(LocalComm* comm) {
  const void* handle = comm->handle.exchange(nullptr, std::memory_order_acq_rel);
  if (handle == nullptr) return;
  const auto key = reinterpret_cast<uintptr_t>(handle);
  for (uint32_t i = 0, at = HandleHash(handle); i < kHandleSlots;
       ++i, at = (at + 1) % kHandleSlots) {
    const uintptr_t seen = handles[at].handle.load(std::memory_order_acquire);
    if (seen == 0) return;
    if (seen == key) {
      handles[at].handle.store(1, std::memory_order_release);
      return;
    }
  }
}

LocalComm* FindComm(const void* handle) {
  const auto key = reinterpret_cast<uintptr_t>(handle);
  if (key <= 1) return nullptr;
  for (uint32_t i = 0, at = HandleHash(handle); i < kHandleSlots;
       ++i, at = (at + 1) % kHandleSlots) {
    const uintptr_t seen = handles[at].handle.load(std::memory_order_acquire);
    if (seen == 0) return nullptr;
    if (seen == key) return &recorder.comms[handles[at].comm.load(std::memory_order_relaxed)];
  }
  return nullptr;
}

void ForgetHandles() {
  for (HandleSlot& slot : handles) slot.handle.store(0, std::memory_order_relaxed);
}

}  // namespace rollcall
