// SPDX-License-Identifier: Apache-2.0
#include "interpose/record/comm_ids.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "interpose/record/creations.h"
#include "interpose/record/handle_table.h"
#include "interpose/thread_state.h"

namespace rollcall {
namespace {

using segment::ChildId;
using segment::CommEntry;
using segment::Mix;

constexpr uint64_t kRecreated = 0x7265637265617465;  // keeps ids of a reused unique id apart
constexpr uint64_t kGrow = 0x67726f7700000000;

// Whether the caller's struct, which may come from an older header, has the field.
#define HAS_FIELD(config, field) \
  ((config) != nullptr && (config)->size >= offsetof(ncclConfig_t, field) + sizeof((config)->field))

const char* ConfigName(const ncclConfig_t* config) {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 3)
  return HAS_FIELD(config, commName) ? config->commName : nullptr;
#else
  static_cast<void>(config);
  return nullptr;
#endif
}

bool IsNonBlocking(const ncclConfig_t* config) {
  if (HAS_FIELD(config, blocking) && config->blocking != NCCL_CONFIG_UNDEF_INT) {
    return config->blocking == 0;
  }
  const char* variable = getenv("NCCL_COMM_BLOCKING");
  return variable != nullptr && strcmp(variable, "0") == 0;
}

uint64_t CommId(uint64_t base_id, int32_t rank) {
  const uint32_t times = TimesCreated(base_id, rank);
  return times == 0 ? base_id : Mix(base_id ^ kRecreated, times);
}

}  // namespace

NewComm FromIdHash(uint64_t hash, int ranks, int rank) {
  NewComm what;
  what.base_id = hash;
  what.id = CommId(hash, rank);
  what.rank = rank;
  what.size = ranks;
  return what;
}

NewComm FromUniqueId(const ncclUniqueId& id, int ranks, int rank, const ncclConfig_t* config) {
  NewComm what = FromIdHash(segment::HashBytes(&id, sizeof(id)), ranks, rank);
  what.name = ConfigName(config);
  what.non_blocking = IsNonBlocking(config);
  return what;
}

bool FromParent(ncclComm_t parent_handle, uint64_t kind, const ncclConfig_t* config,
                NewComm* what) {
  LocalComm* parent = FindThreadComm(&this_thread, parent_handle);
  if (parent == nullptr) return false;
  CommEntry* entry = parent->entry;
  const uint32_t child = entry->child_count.fetch_add(1) + 1;
  what->parent_id = Get(entry->id);
  what->split_id = ChildId(Get(entry->id), kind, child);
  what->parent_rank = static_cast<int32_t>(entry->rank.load(std::memory_order_relaxed));
  what->parent_size = static_cast<int32_t>(entry->size.load(std::memory_order_relaxed));
  what->name = ConfigName(config);
  what->non_blocking = config != nullptr ? IsNonBlocking(config) : parent->non_blocking;
  return true;
}

void SetGrowId(ncclComm_t parent_handle, const ncclUniqueId* unique_id) {
  const LocalComm* parent = FindComm(parent_handle);
  if (parent == nullptr) return;
  CommEntry* entry = parent->entry;
  const uint32_t child = entry->child_count.load(std::memory_order_relaxed) + 1;
  entry->grow_id.store(ChildId(Get(entry->id), kGrow, child), std::memory_order_relaxed);
  entry->grow_base_id.store(segment::HashBytes(unique_id, sizeof(*unique_id)),
                            std::memory_order_release);
}

bool GrownFromParent(ncclComm_t parent_handle, int ranks, const ncclUniqueId* unique_id,
                     const ncclConfig_t* config, NewComm* what) {
  if (!FromParent(parent_handle, kGrow, config, what)) return false;
  what->id = what->split_id;
  what->split_id = 0;
  what->rank = what->parent_rank;
  what->size = ranks;
  if (unique_id != nullptr) what->base_id = segment::HashBytes(unique_id, sizeof(*unique_id));
  return true;
}

uint64_t ExclusionHash(const int* excluded, int count) {
  uint64_t sum = 0;
  for (int i = 0; i < count; ++i) sum += segment::ExclusionTerm(excluded[i]);
  return sum;
}

}  // namespace rollcall
