// SPDX-License-Identifier: Apache-2.0
#include "agent/segments/segment_owner.h"

namespace rollcall {
namespace {

bool IsMaker(const SegmentClaim& claim, const SegmentMapper& mapper) {
  const pid_t own_pid = mapper.own_pid != 0 ? mapper.own_pid : mapper.process.pid;
  const bool same_namespace = claim.pid_namespace == 0 || mapper.pid_namespace == 0 ||
                              claim.pid_namespace == mapper.pid_namespace;
  return own_pid == claim.pid && same_namespace;
}

// A child in a pid namespace of its own may have its parent's number: the parent is older.
const SegmentMapper* FindMaker(const SegmentClaim& claim,
                               const std::vector<SegmentMapper>& mappers) {
  const SegmentMapper* maker = nullptr;
  for (const SegmentMapper& mapper : mappers) {
    if (!IsMaker(claim, mapper)) continue;
    if (maker == nullptr || mapper.process.start_time < maker->process.start_time) {
      maker = &mapper;
    }
  }
  return maker;
}

}  // namespace

bool EndedUnseen(const SegmentClaim& claim) {
  return claim.of_this_boot && claim.life_lock && claim.lock == HeldLock::kFree;
}

SegmentOwner FindOwner(const SegmentClaim& claim, const std::vector<SegmentMapper>* mappers,
                       const SameNumber& same_number, uint64_t own_namespace) {
  const bool numbers_agree = claim.pid_namespace != 0 && claim.pid_namespace == own_namespace;
  if (numbers_agree && claim.start_time != 0 && same_number.start_time == claim.start_time) {
    return {SegmentOwner::kVisible, {claim.pid, claim.start_time}};
  }
  if (mappers == nullptr) return {};
  const SegmentMapper* maker = FindMaker(claim, *mappers);
  if (maker != nullptr) return {SegmentOwner::kVisible, maker->process};
  const ProcessId named = {claim.pid, claim.start_time};
  if (EndedUnseen(claim)) return {SegmentOwner::kEnded, named};
  const bool held = claim.life_lock && claim.lock == HeldLock::kHeld;
  if (numbers_agree && same_number.gone && !held) return {SegmentOwner::kEnded, named};
  return {SegmentOwner::kUnseen, named};
}

}  // namespace rollcall
