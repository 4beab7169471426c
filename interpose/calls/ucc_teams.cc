// SPDX-License-Identifier: Apache-2.0
#include "interpose/calls/ucc_teams.h"

#include <string.h>

#include "interpose/record/comm_ids.h"
#include "interpose/record/creations.h"
#include "interpose/recorder.h"

namespace rollcall {
namespace {

using segment::Mix;

constexpr uint64_t kUcc = 0x7563630000000000;  // keeps these ids apart from other ones
constexpr uint64_t kMostMembers = 1 << 20;

// A context by its address.
struct Context {
  std::atomic<uintptr_t> address{0};  // 0 if free
  uint64_t id = 0;
  uint32_t size = 0;
};
Context contexts[64];

Context* FindContext(uintptr_t address) {
  for (Context& context : contexts) {
    if (context.address.load(std::memory_order_acquire) == address) return &context;
  }
  return nullptr;
}

bool IsWholeJob(uint32_t size) {
  const int32_t world = recorder.mapping.load(std::memory_order_acquire)->world_size;
  return world < 0 || static_cast<uint32_t>(world) == size;
}

bool SizeOf(const UccTeamParams& params, uint64_t* size) {
  if ((params.mask & kUccTeamSize) != 0) {
    *size = params.team_size;
  } else if ((params.mask & kUccTeamOob) != 0) {
    *size = params.oob.size;
  } else if ((params.mask & kUccTeamEpMap) != 0) {
    *size = params.ep_map.size;
  }
  return *size > 0 && *size <= kMostMembers;
}

bool RankOf(const UccTeamParams& params, uint64_t* rank) {
  constexpr uint64_t kRank = kUccTeamEp | kUccTeamEpRange;
  if ((params.mask & kRank) == kRank && params.ep_range == 0) {
    *rank = params.ep;
  } else if ((params.mask & kUccTeamOob) != 0) {
    *rank = params.oob.rank;
  } else {
    return false;
  }
  return true;
}

uint64_t NumberAt(const void* numbers, uint64_t bytes, uint64_t i) {
  uint64_t number = 0;
  memcpy(&number, static_cast<const char*>(numbers) + i * bytes, bytes);
  return number;
}

// Each member's number in the context, whichever way the program gives them.
bool MixMembers(const UccEpMap& map, uint64_t size, uint64_t* id) {
  const uint64_t bytes = map.array.bytes;
  for (uint64_t i = 0; i < size; ++i) {
    uint64_t number = i;
    if (map.type == kUccMapStrided) {
      number = map.strided.start + i * static_cast<uint64_t>(map.strided.stride);
    } else if (map.type == kUccMapArray) {
      if (map.array.numbers == nullptr || (bytes != 4 && bytes != 8)) return false;
      number = NumberAt(map.array.numbers, bytes, i);
    } else if (map.type != kUccMapFull) {
      return false;
    }
    *id = Mix(*id, number);
  }
  return true;
}

bool MixMembersOf(const UccTeamParams& params, const Context& context, uint64_t size,
                  uint64_t* id) {
  if ((params.mask & kUccTeamEpMap) != 0) {
    // The program's array has as many numbers as the map has.
    return params.ep_map.size == size && MixMembers(params.ep_map, size, id);
  }
  UccEpMap all = {};
  all.type = kUccMapFull;
  return size == context.size && MixMembers(all, size, id);
}

}  // namespace

// A process makes few contexts, and one at a time.
void RecordUccContext(const void* address, const UccContextParams& params) {
  if ((params.mask & kUccContextOob) == 0) return;
  const auto rank = static_cast<int32_t>(params.oob.rank);
  const uint64_t base = Mix(kUcc, params.oob.size);
  const auto key = reinterpret_cast<uintptr_t>(address);
  Context* context = FindContext(key);
  if (context == nullptr) context = FindContext(0);
  if (context != nullptr) {
    context->id = Mix(base, TimesCreated(base, rank));
    context->size = params.oob.size;
    context->address.store(key, std::memory_order_release);
  }
  CountCreation(base, rank);
}

void ForgetUccContext(const void* address) {
  Context* context = FindContext(reinterpret_cast<uintptr_t>(address));
  if (context != nullptr) context->address.store(0, std::memory_order_release);
}

bool DescribeUccTeam(const void* address, const UccTeamParams& params, NewComm* what) {
  const Context* context = FindContext(reinterpret_cast<uintptr_t>(address));
  uint64_t size = 0, rank = 0;
  const bool is_known = address != nullptr && context != nullptr && IsWholeJob(context->size);
  if (!is_known || !SizeOf(params, &size) || !RankOf(params, &rank)) return false;
  uint64_t id = Mix(context->id, size);
  if (!MixMembersOf(params, *context, size, &id)) return false;
  if ((params.mask & kUccTeamId) != 0) id = Mix(id, params.id);
  *what = FromIdHash(id, static_cast<int>(size), static_cast<int>(rank));
  return true;
}

}  // namespace rollcall
