// SPDX-License-Identifier: Apache-2.0
#include "interpose/record/creations.h"

#include <atomic>

#include "interpose/segment.h"

namespace rollcall {
namespace {

// Open addressing by hash. When the table is full, new ids count as never used.
constexpr uint32_t kSlots = 8192;
struct Slot {
  std::atomic<uint64_t> key;  // 0 if free
  std::atomic<uint32_t> times;
};
Slot slots[kSlots];
std::atomic<uint32_t> used{0};
constexpr uint32_t kMostUsed = kSlots / 4 * 3;

uint64_t CreationKey(uint64_t base_id, int32_t rank) {
  return segment::Mix(base_id, static_cast<uint32_t>(rank)) | 1;
}

// The slot of the key, or the free slot where the key belongs.
Slot* FindSlot(uint64_t key) {
  uint32_t at = static_cast<uint32_t>(key >> 1) % kSlots;
  for (;; at = (at + 1) % kSlots) {
    const uint64_t seen = slots[at].key.load(std::memory_order_acquire);
    if (seen == key || seen == 0) return &slots[at];
  }
}

}  // namespace

void CountCreation(uint64_t base_id, int32_t rank) {
  const uint64_t key = CreationKey(base_id, rank);
  for (;;) {
    Slot* slot = FindSlot(key);
    uint64_t seen = slot->key.load(std::memory_order_acquire);
    if (seen == 0) {
      if (used.load(std::memory_order_relaxed) >= kMostUsed) return;
      if (!slot->key.compare_exchange_strong(seen, key) && seen != key) continue;
      used.fetch_add(1, std::memory_order_relaxed);
    }
    slot->times.fetch_add(1, std::memory_order_relaxed);
    return;
  }
}

uint32_t TimesCreated(uint64_t base_id, int32_t rank) {
  const Slot* slot = FindSlot(CreationKey(base_id, rank));
  return slot->key.load(std::memory_order_acquire) == 0
             ? 0
             : slot->times.load(std::memory_order_relaxed);
}

void ForgetCreations() {
  if (used.exchange(0) == 0) return;
  for (Slot& slot : slots) {
    slot.key.store(0, std::memory_order_relaxed);
    slot.times.store(0, std::memory_order_relaxed);
  }
}

}  // namespace rollcall
