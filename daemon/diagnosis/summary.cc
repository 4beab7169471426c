// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/summary.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/cut_text.h"
#include "daemon/diagnosis/verdict_sites.h"
#include "daemon/words/fit_sentence.h"
#include "daemon/words/outside_words.h"
#include "daemon/words/places.h"
#include "daemon/words/sentence_parts.h"
#include "daemon/words/sentences.h"
#include "daemon/words/stops.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr size_t kMostSummaryLines = 2;  // of culprits
constexpr size_t kMostLookedAt = 64;     // culprits, for their lines
constexpr size_t kLongestLead = kLongestSentence / 2;
constexpr size_t kNamedEdges = 3;  // of a cycle
constexpr size_t kLongestError = 160;

// The culprits at one line of the program: " is in ", " are in ", "`step` (train.py:31)".
struct Line {
  const char* one = "";
  const char* many = "";
  std::string words;
  std::vector<int32_t> ranks;
};

// The causes whose sentence may not begin with the culprits.
bool MayNeedLead(const Verdict& v) {
  switch (v.cause) {
    case Cause::kDeadlock:
    case Cause::kBlockedBeforeStart:
    case Cause::kNcclError:
    case Cause::kConcurrentUse:
    case Cause::kStalledInFlight:
    case Cause::kOperationMismatch:
    case Cause::kArgumentMismatch:
    case Cause::kUnmatchedP2p:
    case Cause::kTeardownHang:
      return true;
    default:
      return false;
  }
}

// Where a rank has not made the call, the line of its last call shows little. Where it has, but
// which of its calls NCCL refused or which two overlapped is not known, its last call is near.
bool IsSiteWorthALead(const Verdict& v, const Culprit& culprit) {
  if (culprit.site.empty() || v.position_end != 0) return false;
  return !IsSiteOfLastCall(v, culprit) || v.cause == Cause::kNcclError ||
         v.cause == Cause::kConcurrentUse;
}

// The line at which a culprit stands; if its stacks are not known, the line of its call.
Line LineOf(const Verdict& v, size_t i) {
  Line line = {" is in ", " are in ", i < v.places.size() ? PlaceInWords(v.places[i]) : "", {}};
  const Culprit& culprit = v.culprits[i];
  if (!line.words.empty() || !IsSiteWorthALead(v, culprit)) return line;
  StackPlace site;
  site.at = culprit.site;
  const bool is_last = IsSiteOfLastCall(v, culprit);
  return {is_last ? " made its last call in " : " made its call in ",
          is_last ? " made their last calls in " : " made their calls in ",
          PlaceInWords(site),
          {}};
}

std::vector<Line> Lines(const Verdict& v) {
  std::vector<Line> lines;
  for (size_t i = 0; i < std::min(kMostLookedAt, v.culprits.size()); ++i) {
    Line line = LineOf(v, i);
    if (line.words.empty()) continue;
    auto known = std::find_if(lines.begin(), lines.end(), [&](const Line& other) {
      return other.words == line.words && absl::string_view(other.one) == line.one;
    });
    if (known == lines.end()) known = lines.insert(lines.end(), std::move(line));
    known->ranks.push_back(v.culprits[i].rank);
  }
  return lines;
}

// "rank 1 is in `step` (train.py:31) and in `save` (train.py:57): ".
std::string ThreadLinesInWords(const Verdict& v) {
  const std::string text =
      absl::StrCat(RanksInWords({v.culprits.front().rank}), " is in ",
                   PlaceInWords(v.thread_places[0]), " and in ", PlaceInWords(v.thread_places[1]));
  return absl::StrCat(FitSentence(text, kLongestLead), ": ");
}

// "rank 0 is in `step` (train.py:31), rank 1 is in `evaluate` (train.py:57): "; as many lines as
// have room, "" if none is known.
std::string LinesInWords(const Verdict& v) {
  std::string text;
  const std::vector<Line> lines = Lines(v);
  if (lines.size() < 2 && v.thread_places.size() > 1) return ThreadLinesInWords(v);
  for (size_t i = 0; i < std::min(kMostSummaryLines, lines.size()); ++i) {
    const Line& line = lines[i];
    const std::string words = absl::StrCat(
        RanksInWords(line.ranks), PluralForm(line.ranks.size(), line.one, line.many), line.words);
    if (i > 0 && NameFewerRanks(text + words, 1).size() > kLongestLead) break;
    absl::StrAppend(&text, i == 0 ? "" : ", ", words);
  }
  return text.empty() ? "" : absl::StrCat(FitSentence(text, kLongestLead), ": ");
}

// True if the sentence begins with what the culprits do, and not only with who they are.
bool StartsWithSubject(const Verdict& v, const std::string& sentence) {
  const std::string subject = Subject(v).substr(0, kLongestLead);
  return subject != Who(v.culprits).substr(0, kLongestLead) && absl::StartsWith(sentence, subject);
}

// True if the sentence begins with the lines of the culprits.
bool HasLines(const Verdict& v, const std::string& sentence) {
  return !v.places.empty() && StartsWithSubject(v, sentence);
}

// A process that cannot run is the headline, whatever its ranks have or have not called.
bool NeedsStopLead(const Verdict& v, const std::string& sentence) {
  return IsAnyStopped(v.culprits) &&
         !(StartsWithSubject(v, sentence) && !StopOfAll(v.culprits).empty());
}

// "rank 1 is stopped by a signal (state T): ".
std::string StopsInWords(const Verdict& v) {
  std::map<std::string, std::vector<int32_t>> stopped;
  for (const Culprit& culprit : v.culprits) {
    const std::string stop = StopInWords(culprit.state, culprit.wait_channel);
    if (!stop.empty()) stopped[stop].push_back(culprit.rank);
  }
  std::vector<std::string> parts;
  for (const auto& [stop, ranks] : stopped) {
    parts.push_back(
        absl::StrCat(RanksInWords(ranks), PluralForm(ranks.size(), " is ", " are "), stop));
  }
  return absl::StrCat(absl::StrJoin(parts, ", "), ": ");
}

// The culprits of a cycle that are wrong by their own pasts.
std::string OtherOrder(const Verdict& v) {
  std::vector<std::string> edges;
  for (size_t i = 0; i < std::min(kNamedEdges, v.chain.size()); ++i) {
    edges.push_back(EdgeInWords(v.chain[i]));
  }
  return absl::StrCat(
      Subject(v),
      CulpritForm(v, " no longer makes its calls in the order of its earlier steps: ",
                  " no longer make their calls in the order of their earlier steps: "),
      absl::StrJoin(edges, ", and "));
}

// The exception that ended the ranks on which NCCL reported an error, with NCCL's own words as a
// rule; or that has ended the program of a rank, which makes calls on its way out.
std::string FailureInWords(const Verdict& v, const std::string& sentence) {
  if (v.culprits.empty()) return "";
  const bool is_refused = v.cause == Cause::kInitIncomplete && v.culprits.front().is_refused;
  if (v.cause != Cause::kNcclError && !is_refused && !v.culprits.front().exits) return "";
  const std::string& error = v.culprits.front().error;
  if (absl::StrContains(sentence, CutText(error, kLongestError, "..."))) return "";
  const bool is_one = std::all_of(v.culprits.begin(), v.culprits.end(),
                                  [&](const Culprit& c) { return c.error == error; });
  if (error.empty() || !is_one) return "";
  return absl::StrCat(", and ", CulpritsInWords(v.culprits), " failed with \"",
                      CutText(error, kLongestError, "..."), "\"");
}

std::string WithoutTail(std::string sentence, const std::string& tail) {
  if (absl::EndsWith(sentence, tail)) sentence.resize(sentence.size() - tail.size());
  return sentence;
}

}  // namespace

std::string Summarize(const Verdict& verdict, size_t period) {
  const std::string tail = WaitTail(verdict);
  const bool is_decided =
      verdict.cause == Cause::kDeadlock && verdict.divergence == DivergenceKind::kSwapped;
  std::string text = is_decided ? OtherOrder(verdict) : WithoutTail(WriteSummary(verdict), tail);
  if (NeedsStopLead(verdict, text)) {
    text = StopsInWords(verdict) + text;
  } else if (MayNeedLead(verdict) && !HasLines(verdict, text)) {
    text = LinesInWords(verdict) + text;
  }
  absl::StrAppend(&text, FailureInWords(verdict, text), OutsideInWords(verdict));
  std::string end = tail;
  if (period != 0 && !tail.empty()) absl::StrAppend(&end, " (of period ", period, " calls)");
  if (text.size() + end.size() > kLongestSentence) end = tail;
  return absl::StrCat(FitSentence(text, kLongestSentence - end.size()), end);
}

}  // namespace rollcall
