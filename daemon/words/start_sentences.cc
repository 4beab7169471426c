// SPDX-License-Identifier: Apache-2.0
#include "daemon/words/start_sentences.h"

#include <algorithm>
#include <cstdint>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/words/places.h"
#include "daemon/words/sentence_parts.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr size_t kNamedSizes = 3;

// Where no side has a majority, the culprits are all that wait.
bool AreAllBlamed(const Verdict& v) {
  const std::vector<int32_t>& waiting = v.waiting_ranks;
  return !v.culprits.empty() &&
         std::find(waiting.begin(), waiting.end(), v.culprits.front().rank) != waiting.end();
}

// " for key "settings" of the store"; "" if none is known.
std::string ForKey(const Verdict& v) {
  return v.awaited_key.empty() ? "" : absl::StrCat(" for key \"", v.awaited_key, "\" of the store");
}

// "rank 0 (node-0, pid 4000) is in `main` (train.py:9) and expects 5 ranks, and the others expect
// 4".
std::string OtherSize(const Verdict& v) {
  std::set<uint64_t> sizes;
  for (const Culprit& culprit : v.culprits) {
    if (sizes.size() < kNamedSizes) sizes.insert(culprit.call.count);
  }
  const std::string expects = absl::StrCat(Subject(v), CulpritForm(v, " expects ", " expect "),
                                           absl::StrJoin(sizes, " and "), " ranks");
  const std::string key = ForKey(v);
  const std::string waits =
      key.empty() ? "" : absl::StrCat(CulpritForm(v, " and waits", " and wait"), key);
  if (AreAllBlamed(v)) return absl::StrCat(expects, waits);
  return absl::StrCat(expects, waits, ", and the others expect ", v.communicator_size);
}

std::string NotStarted(const Verdict& v) {
  return absl::StrCat(CulpritsInWords(v.culprits), CulpritForm(v, " was", " were"),
                      " never started, or no agent reports ", CulpritForm(v, "it", "them"), ": ",
                      RanksInWords(v.waiting_ranks),
                      PluralForm(v.waiting_ranks.size(), " expects ", " expect "),
                      v.communicator_size, " ranks");
}

std::string WaitsElsewhere(const Verdict& v) {
  if (AreAllBlamed(v)) {
    return absl::StrCat(Subject(v), " wait for each other at different points of the program");
  }
  return absl::StrCat(Subject(v), CulpritForm(v, " waits", " wait"),
                      " for the others at another point of the program than they do");
}

std::string AllWait(const Verdict& v) {
  const std::string place = PlaceInWords(v.waiting_place);
  const size_t waiting = v.waiting_ranks.size();
  return absl::StrCat(
      waiting == 1 ? "the only rank waits" : absl::StrCat("all ", waiting, " ranks wait"),
      place.empty() ? "" : absl::StrCat(" in ", place, ","),
      v.awaited_key.empty() ? " for a process that is not among them"
                            : absl::StrCat(ForKey(v), ", which no rank sets"));
}

std::string Fault(const Verdict& v) {
  switch (v.start_fault) {
    case StartFault::kOtherSize:
      return OtherSize(v);
    case StartFault::kNotStarted:
      return NotStarted(v);
    case StartFault::kWaitsElsewhere:
      return WaitsElsewhere(v);
    case StartFault::kAllWait:
      return AllWait(v);
    case StartFault::kNotReached:
    case StartFault::kNone:
      break;
  }
  return absl::StrCat(Subject(v), CulpritForm(v, " has", " have"),
                      " not reached the point where the others wait", ForKey(v));
}

}  // namespace

std::string StartSentence(const Verdict& v) {
  return absl::StrCat(Fault(v), ", and no rank has made an NCCL call yet",
                      v.is_idle ? ": if they wait for work, the job does not hang" : "",
                      WaitTail(v));
}

}  // namespace rollcall
