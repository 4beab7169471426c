// SPDX-License-Identifier: Apache-2.0
#include "interpose/record/blocked_threads.h"

#include "interpose/record/group_lists.h"
#include "interpose/recorder.h"
#include "interpose/thread_slots.h"

namespace rollcall {

segment::BlockedEntry* ClaimBlockedEntry() {
  const int slot =
      ClaimThreadSlot(segment::kBlockedCapacity, [](int i) { return &recorder.blocked[i].tid; });
  if (slot < 0) {
    recorder.mapping.load(std::memory_order_acquire)->lost_threads.fetch_add(1);
    return nullptr;
  }
  recorder.blocked[slot].since.store(0, std::memory_order_relaxed);
  return &recorder.blocked[slot];
}

bool IsInCall(const LocalComm* comm) {
  for (uint32_t i = 0; i < segment::kBlockedCapacity; ++i) {
    const segment::BlockedEntry& entry = recorder.blocked[i];
    if (entry.since.load(std::memory_order_acquire) == 0) continue;
    switch (OpKind(static_cast<Op>(entry.op.load(std::memory_order_relaxed)))) {
      case CallKind::kLocal:
      case CallKind::kWait:
        break;  // a call of these kinds records nothing on a communicator
      case CallKind::kGroup:
        if (GroupHasCalls(entry.tid.load(std::memory_order_relaxed), comm)) return true;
        break;
      default:
        if (entry.comm.load(std::memory_order_relaxed) == comm->index) return true;
    }
  }
  return false;
}

}  // namespace rollcall
