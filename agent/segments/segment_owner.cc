// SPDX-License-Identifier: Apache-2.0
#include "agent/segments/segment_owner.h"

namespace rollcall {
namespace {

bool IsOwner(const SegmentClaim& claim, const SegmentMapper& mapper) {
  const pid_t own_pid = mapper.own_pid != 0 ? mapper.own_pid : mapper.process.pid;
  const bool same_namespace = claim.pid_namespace == 0 || mapper.pid_namespace == 0 ||
                              claim.pid_namespace == mapper.pid_namespace;
  return own_pid == claim.pid && same_namespace;
}

// Returns the oldest match: a child in another pid namespace may have the same pid as its parent.
const SegmentMapper* FindOwningMapper(const SegmentClaim& claim,
                                      const std::vector<SegmentMapper>& mappers) {
  const SegmentMapper* owner = nullptr;
  for (const SegmentMapper& mapper : mappers) {
    if (!IsOwner(claim, mapper)) continue;
    if (owner == nullptr || mapper.process.start_time < owner->process.start_time) {
      owner = &mapper;
    }
  }
  return owner;
}

}  // namespace

bool LifeLockShowsEnd(const SegmentClaim& claim) {
  return claim.of_this_boot && claim.life_lock && claim.lock == HeldLock::kFree;
}

SegmentOwner FindOwner(const SegmentClaim& claim, const std::vector<SegmentMapper>* mappers,
                       const PidLookup& pid_lookup, uint64_t own_namespace) {
  const bool numbers_agree = claim.pid_namespace != 0 && claim.pid_namespace == own_namespace;
  if (numbers_agree && claim.start_time != 0 && pid_lookup.start_time == claim.start_time) {
    return {SegmentOwner::kVisible, {claim.pid, claim.start_time}};
  }
  if (mappers == nullptr) return {};
  const SegmentMapper* owner = FindOwningMapper(claim, *mappers);
  if (owner != nullptr) return {SegmentOwner::kVisible, owner->process};
  const ProcessId named = {claim.pid, claim.start_time};
  if (LifeLockShowsEnd(claim)) return {SegmentOwner::kEnded, named};
  const bool held = claim.life_lock && claim.lock == HeldLock::kHeld;
  if (numbers_agree && pid_lookup.gone && !held) return {SegmentOwner::kEnded, named};
  return {SegmentOwner::kUnseen, named};
}

}  // namespace rollcall
