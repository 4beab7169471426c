// SPDX-License-Identifier: Apache-2.0
#include "interpose/group_lists.h"

#include "interpose/thread_slots.h"

namespace rollcall {
namespace {

constexpr int kPlaces = 128;
GroupLists places[kPlaces];

}  // namespace

GroupLists* ClaimGroupLists(ThreadState* thread) {
  const int place = ClaimThreadSlot(kPlaces, [](int i) { return &places[i].owner; });
  if (place >= 0) thread->lists = &places[place];
  return thread->lists;
}

bool GroupNames(uint32_t thread, const LocalComm* comm) {
  for (const GroupLists& lists : places) {
    if (lists.owner.load(std::memory_order_relaxed) != thread) continue;
    for (const GroupComm& part : lists.group) {
      if (part.comm == comm) return true;
    }
  }
  return false;
}

void ForgetGroupLists() {
  for (GroupLists& lists : places) {
    // Writing would give each place memory of its own.
    if (lists.owner.load(std::memory_order_relaxed) != 0) lists.owner.store(0);
  }
}

}  // namespace rollcall
