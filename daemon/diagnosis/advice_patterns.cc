// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/advice_patterns.h"

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "daemon/words/stops.h"

namespace rollcall {
namespace {

bool HasAny(const std::string& functions, AdviceWords words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return absl::StrContains(functions, word); });
}

bool IsBarrier(const CallArgs& call) { return call.op == Op::kAllReduce && call.count == 1; }

}  // namespace

bool HasField(const Verdict& v, const char* field) {
  return std::find(v.mismatched_fields.begin(), v.mismatched_fields.end(), field) !=
         v.mismatched_fields.end();
}

bool AnyCulprit(const Verdict& v, bool (*is)(const Culprit&)) {
  return std::any_of(v.culprits.begin(), v.culprits.end(), is);
}

bool IsAbsence(const Verdict& v) {
  return Is(v, Cause::kMissingRank) || Is(v, Cause::kInitIncomplete) ||
         Is(v, Cause::kUnmatchedP2p) || Is(v, Cause::kTeardownHang) ||
         Is(v, Cause::kBlockedBeforeStart) || Is(v, Cause::kStandstill);
}

bool StallsAlone(const Verdict& v) {
  const bool lacks_a_request = v.communicator_kind == CommKind::kGloo && AreCulpritsElsewhere(v);
  return Is(v, Cause::kStalledInFlight) && v.beside.empty() && !IsAnyStopped(v.culprits) &&
         !lacks_a_request;
}

bool WaitsForRanks(const Verdict& v) {
  return IsContradiction(v.cause) || CulpritIsIn(v, waits::kCollective);
}

bool PlacesAreKnown(const Verdict& v) {
  return std::any_of(v.places.begin(), v.places.end(),
                     [](const StackPlace& place) { return !place.functions.empty(); });
}

bool CulpritIsIn(const Verdict& v, AdviceWords words) {
  if (!PlacesAreKnown(v)) return HasAny(v.stack_words, words);
  return std::any_of(v.places.begin(), v.places.end(),
                     [&](const StackPlace& place) { return HasAny(place.functions, words); });
}

bool CulpritIsIn(const Verdict& v, waits::Kind wait) {
  if (!PlacesAreKnown(v)) return HasWait(v.stack_words, wait);
  return std::any_of(v.places.begin(), v.places.end(),
                     [&](const StackPlace& place) { return HasWait(place.functions, wait); });
}

bool AbsentIsIn(const Verdict& v, waits::Kind wait) { return IsAbsence(v) && CulpritIsIn(v, wait); }

bool WaiterIsIn(const Verdict& v, AdviceWords words) {
  return HasAny(v.waiting_place.functions, words);
}

bool WaiterIsIn(const Verdict& v, waits::Kind wait) {
  return HasWait(v.waiting_place.functions, wait);
}

bool AbsentIsIn(const Verdict& v, AdviceWords words) {
  return IsAbsence(v) && CulpritIsIn(v, words);
}

bool IsOneLine(const Verdict& v) {
  const std::string& waits = v.waiting_place.at;
  if (!v.places.empty() && !v.places.front().at.empty() && !waits.empty()) {
    return v.places.front().at == waits;
  }
  return !v.site.empty() && !v.culprits.empty() && v.culprits.front().site == v.site;
}

bool MayBeOneLine(const Verdict& v) {
  const bool places = !v.places.empty() && !v.places.front().at.empty();
  const bool sites = !v.culprits.empty() && !v.culprits.front().site.empty();
  const bool known = (places && !v.waiting_place.at.empty()) || (sites && !v.site.empty());
  return !known || IsOneLine(v);
}

bool Meets(const Verdict& v, Op a, Op b) {
  if (!Is(v, Cause::kOperationMismatch)) return false;
  return std::any_of(v.culprits.begin(), v.culprits.end(), [&](const Culprit& culprit) {
    const Op theirs = Canonical(culprit.call.op);
    const Op others = Canonical(v.call.op);
    return (theirs == a && others == b) || (theirs == b && others == a);
  });
}

bool MeetsBarrier(const Verdict& v) {
  return Is(v, Cause::kOperationMismatch) &&
         (IsBarrier(v.call) || AnyCulprit(v, [](const Culprit& c) { return IsBarrier(c.call); }));
}

bool Creates(const Verdict& v) { return OpKind(v.call.op) == CallKind::kCreate; }

bool NumbersOutOfStep(const Verdict& v) {
  return Is(v, Cause::kInitIncomplete) && v.communicator_kind == CommKind::kGloo &&
         v.divergence == DivergenceKind::kSkipped;
}

bool ShowsTheWrongGroup(const Verdict& v) { return v.is_usual_elsewhere || NumbersOutOfStep(v); }

}  // namespace rollcall
