// SPDX-License-Identifier: Apache-2.0
#include "daemon/words/key_sentences.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/cut_text.h"
#include "daemon/words/rank_ranges.h"
#include "daemon/words/sentence_parts.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr size_t kLongestErrorOfKey = 160;

// No rank has set the key, so these have not.
std::string HasNotSet(const Verdict& v, const char* also) {
  return absl::StrCat(CulpritForm(v, " has ", " have "), also, Where(v));
}

// "rank 3 (node-0, pid 4003) died (killed by signal 9)".
std::string HowItLeft(const Verdict& v) {
  const std::string& error = v.culprits.front().error;
  const bool is_one = std::all_of(v.culprits.begin(), v.culprits.end(),
                                  [&error](const Culprit& c) { return c.error == error; });
  if (!error.empty() && is_one) {
    return absl::StrCat(Who(v.culprits), " failed with \"",
                        CutText(error, kLongestErrorOfKey, "..."), "\"");
  }
  const std::string& ending = v.culprits.front().ending;
  const char* verb = v.cause == Cause::kRankDied ? " died" : " left";
  return absl::StrCat(Who(v.culprits), verb, ending.empty() ? "" : absl::StrCat(" (", ending, ")"));
}

bool DoAllWait(const Verdict& v) {
  return v.waiting_ranks.size() == static_cast<size_t>(v.communicator_size);
}

}  // namespace

std::string KeySentence(const Verdict& v) {
  if (DoAllWait(v) || v.culprits.empty()) {
    return absl::StrCat("all ", CountInWords(v.waiting_ranks.size(), "rank waits", "ranks wait"),
                        " for ", Where(v), ", which no rank sets", WaitTail(v));
  }
  if (v.cause == Cause::kRankDied || v.cause == Cause::kRankExited) {
    return absl::StrCat(HowItLeft(v), " and never set ", Where(v), WaitTail(v));
  }
  if (v.is_idle) {
    return absl::StrCat(Subject(v), CulpritForm(v, " waits", " wait"),
                        " for requests, and the others wait for ", Where(v),
                        ": if this server is idle, the job does not hang", WaitTail(v));
  }
  if (v.late) return absl::StrCat(Subject(v), HasNotSet(v, "not yet set "), WaitTail(v));
  return absl::StrCat(Subject(v), HasNotSet(v, "neither set nor awaited "), WaitTail(v));
}

std::string KeyEdgeInWords(const WaitEdge& edge) {
  const std::string key =
      CommunicatorInWords(edge.communicator, edge.communicator_name, edge.communicator_kind);
  const RankRanges others(edge.to);
  return absl::StrCat(RanksInWords(edge.from),
                      PluralForm(edge.from.size(), " waits for ", " wait for "), key, ", which ",
                      others.InWords(), PluralForm(others.size(), " has", " have"), " not set");
}

}  // namespace rollcall
