// SPDX-License-Identifier: Apache-2.0
#include "interpose/record/group_lists.h"

#include "interpose/thread_slots.h"

namespace rollcall {
namespace {

constexpr int kSlots = 128;
GroupLists slots[kSlots];

}  // namespace

GroupLists* ClaimGroupLists(ThreadState* thread) {
  const int slot = ClaimThreadSlot(kSlots, [](int i) { return &slots[i].owner; });
  if (slot >= 0) thread->lists = &slots[slot];
  return thread->lists;
}

bool GroupHasCalls(uint32_t thread, const LocalComm* comm) {
  for (const GroupLists& lists : slots) {
    if (lists.owner.load(std::memory_order_relaxed) != thread) continue;
    for (const GroupComm& part : lists.group) {
      if (part.comm == comm) return true;
    }
  }
  return false;
}

void ForgetGroupLists() {
  for (GroupLists& lists : slots) {
    // A write would give each slot its own memory page after the fork.
    if (lists.owner.load(std::memory_order_relaxed) != 0) lists.owner.store(0);
  }
}

}  // namespace rollcall
