// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/verdict.h"

#include <algorithm>

namespace rollcall {

const char* CauseName(Cause cause) {
  switch (cause) {
#define NAME(name, text) \
  case Cause::name:      \
    return text;
    ROLLCALL_CAUSES(NAME)
#undef NAME
  }
  return "unknown";
}

const char* CertaintyName(Certainty certainty) {
  switch (certainty) {
    case Certainty::kPossible:
      return "possible";
    case Certainty::kLikely:
      return "likely";
    case Certainty::kCertain:
      return "certain";
  }
  return "possible";
}

const char* StandShapeName(StandShape shape) {
  switch (shape) {
    case StandShape::kNone:
      break;
#define STAND_SHAPE(name, word, meaning) \
  case StandShape::name:                 \
    return word;
#include "daemon/model/stand_shapes.def"
  }
  return "";
}

RankRange CulpritRange(const Culprit& culprit) {
  return {culprit.rank, culprit.rank + (culprit.ranks - 1)};
}

std::vector<RankRange> CulpritRanges(const std::vector<Culprit>& culprits) {
  std::vector<RankRange> ranges;
  ranges.reserve(culprits.size());
  for (const Culprit& culprit : culprits) ranges.push_back(CulpritRange(culprit));
  return ranges;
}

size_t CountCulprits(const std::vector<Culprit>& culprits) {
  size_t count = 0;
  for (const Culprit& culprit : culprits) count += static_cast<size_t>(culprit.ranks);
  return count;
}

bool AreCulpritsElsewhere(const Verdict& verdict) {
  const CallArgs& call = verdict.call;
  const bool is_message_of_gloo =
      verdict.communicator_kind == CommKind::kGloo && OpKind(call.op) == CallKind::kP2p;
  const bool need_not_stay = ReturnsEarly(call.op) || IsOfMpi(call.op) || is_message_of_gloo ||
                             CallsReturnEarly(verdict.communicator_kind);
  const bool is_stall = verdict.cause == Cause::kStalledInFlight && need_not_stay;
  if (!is_stall || verdict.culprits.empty()) return false;
  const std::vector<int32_t>& waiting = verdict.waiting_ranks;
  return std::find(waiting.begin(), waiting.end(), verdict.culprits.front().rank) == waiting.end();
}

}  // namespace rollcall
