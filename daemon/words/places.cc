// SPDX-License-Identifier: Apache-2.0
#include "daemon/words/places.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/cut_text.h"
#include "daemon/words/rank_ranges.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr size_t kMostLines = 2;     // of culprits, in a sentence
constexpr size_t kMostLetters = 60;  // of a name in a sentence

struct PlaceLine {
  std::string words;
  std::vector<int32_t> ranks;
};

// Ranks by the words for their lines, in the order of the culprits.
std::vector<PlaceLine> Lines(const Verdict& verdict) {
  std::vector<PlaceLine> lines;
  for (size_t i = 0; i < std::min(verdict.places.size(), verdict.culprits.size()); ++i) {
    std::string words = PlaceInWords(verdict.places[i]);
    if (words.empty()) continue;
    auto line = std::find_if(lines.begin(), lines.end(),
                             [&](const PlaceLine& known) { return known.words == words; });
    if (line == lines.end()) line = lines.insert(lines.end(), {std::move(words), {}});
    line->ranks.push_back(verdict.culprits[i].rank);
  }
  return lines;
}

std::string Cut(absl::string_view name) {
  if (name.size() <= kMostLetters) return std::string(name);
  return CutText(std::string(name), kMostLetters, "...");
}

// Returns the function of "/x/train.py:31 in f.<locals>.g": "g". Of a list comprehension or a
// lambda: the function around it.
std::string FunctionOf(absl::string_view at) {
  const size_t in = at.rfind(" in ");
  if (in == absl::string_view::npos) return "";
  absl::string_view function = at.substr(in + 4);
  constexpr absl::string_view kLocal = ".<locals>.";
  size_t local = function.rfind(kLocal);
  while (local != absl::string_view::npos && absl::EndsWith(function, ">")) {
    function = function.substr(0, local);
    local = function.rfind(kLocal);
  }
  if (local != absl::string_view::npos) function.remove_prefix(local + kLocal.size());
  if (function == "<module>") return "the top level";
  return absl::StrCat("`", Cut(function), "`");
}

// "rank 3 is at line 86 of `train`".
std::string StandsAt(const Verdict& verdict) {
  const StackDeparture& departure = verdict.departure;
  const size_t i = departure.culprit;
  if (i >= verdict.culprits.size()) return "";
  return absl::StrCat("rank ", verdict.culprits[i].rank, " is at line ", departure.culprit_line,
                      " of ", FunctionOf(absl::StrCat(" in ", departure.function)));
}

std::string LinesInWords(int32_t first, int32_t last) {
  return first == last ? absl::StrCat("line ", first) : absl::StrCat("lines ", first, "-", last);
}

std::string EndOfPassInWords(int32_t line) {
  return line == 0 ? "" : absl::StrCat("; line ", line, " may end a pass before that call");
}

std::string BranchInWords(const StackDeparture& departure) {
  if (departure.decides_at != 0) {
    return absl::StrCat(", in another branch of the condition of line ", departure.decides_at);
  }
  if (departure.condition_line == 0) return "";
  return absl::StrCat(", in the branch of line ", departure.condition_line);
}

// A condition, or an exception, is more telling.
std::string ReturnInWords(const Verdict& verdict) {
  const StackDeparture& departure = verdict.departure;
  const bool is_known =
      !BranchInWords(departure).empty() || !verdict.handled.exception.type.empty();
  if (departure.returns_at == 0 || is_known) return "";
  return absl::StrCat("; line ", departure.returns_at, " of ",
                      FunctionOf(absl::StrCat(" in ", departure.returns_from)),
                      " may return before its call");
}

// What the comparison of two stacks has found; empty if there is none, or the lines are not known.
std::string ComparisonInWords(const Verdict& verdict) {
  using Kind = StackDeparture::Kind;
  const StackDeparture& d = verdict.departure;
  const std::string stands = StandsAt(verdict);
  if (d.culprit_line <= 0 || d.waiter_line <= 0 || d.culprit_line == d.waiter_line) return "";
  if (stands.empty()) return "";
  const std::string branch = BranchInWords(d);
  switch (d.kind) {
    case Kind::kSkipped:
      if (d.leaves_branch) {
        return absl::StrCat(stands, branch, ", which leaves before line ", d.waiter_line,
                            ", at which a rank waits");
      }
      if (d.culprit_line < d.waiter_line) {
        return absl::StrCat(stands, " again, a rank that waits still at line ", d.waiter_line,
                            branch, EndOfPassInWords(d.skips_at));
      }
      return absl::StrCat(stands, ", past line ", d.waiter_line, ", at which a rank waits", branch);
    case Kind::kExtra:
      if (d.is_again) {
        return absl::StrCat(stands, " again, a rank that waits still at line ", d.waiter_line,
                            ": it has made the calls before that line once more");
      }
      return absl::StrCat(stands, branch, branch.empty() ? "" : ",",
                          " and a rank that waits at line ", d.waiter_line, ReturnInWords(verdict));
    case Kind::kLeftLoop:
      if (d.loop_first == 0) return "";
      return absl::StrCat(stands, ", behind the loop of ", LinesInWords(d.loop_first, d.loop_last),
                          ", in which a rank waits at line ", d.waiter_line,
                          EndOfPassInWords(d.condition_line));
    case Kind::kStays:
      if (d.loop_first == 0) {
        return absl::StrCat(stands, ", in a loop that a rank that waits has left for line ",
                            d.waiter_line);
      }
      return absl::StrCat(stands, ", in the loop of ", LinesInWords(d.loop_first, d.loop_last),
                          ", which a rank that waits has left");
    case Kind::kUnknown:
    case Kind::kBusy:
      break;
  }
  return "";
}

}  // namespace

std::string PlaceInWords(const StackPlace& place) {
  const std::string function = FunctionOf(place.at);
  if (function.empty()) return "";
  absl::string_view file = absl::string_view(place.at).substr(0, place.at.rfind(" in "));
  file = file.substr(file.rfind('/') + 1);
  const std::string inside =
      place.inside.empty()
          ? ""
          : absl::StrCat(place.sleeps ? ", waiting in " : ", inside ", Cut(place.inside));
  return absl::StrCat(function, " (", Cut(file), ")", inside);
}

std::string DepartureInWords(const Verdict& verdict) {
  const std::string compared = ComparisonInWords(verdict);
  if (!compared.empty() || !IsContradiction(verdict.cause)) return compared;
  const std::vector<PlaceLine> lines = Lines(verdict);
  if (lines.size() != 1 || verdict.waiting_place.at.empty()) return "";
  const StackPlace& place = *std::find_if(verdict.places.begin(), verdict.places.end(),
                                          [](const StackPlace& p) { return !p.at.empty(); });
  if (place.at == verdict.waiting_place.at) return "";
  const size_t culprits = CountCulprits(verdict.culprits);
  const std::string function = FunctionOf(place.at);
  const std::string does = place.inside.empty()
                               ? absl::StrCat(PluralForm(culprits, " is in ", " are in "), function)
                               : absl::StrCat(PluralForm(culprits, " calls ", " call "),
                                              Cut(place.inside), " in ", function);
  return absl::StrCat(RanksInWords(lines[0].ranks), culprits == 1 ? " alone" : "", does,
                      ", a rank that waits is in ", FunctionOf(verdict.waiting_place.at));
}

std::string BeginWithPlaces(const Verdict& verdict, const std::string& who) {
  const std::vector<PlaceLine> lines = Lines(verdict);
  if (lines.empty()) return who;
  const size_t all = CountCulprits(verdict.culprits);
  if (lines.size() == 1 && lines[0].ranks.size() == all) {
    const char* comma = absl::StrContains(lines[0].words, ", ") ? "," : "";
    return absl::StrCat(who, PluralForm(all, " is in ", " are in "), lines[0].words, comma, " and");
  }
  std::string text;
  for (size_t i = 0; i < std::min(kMostLines, lines.size()); ++i) {
    const std::vector<int32_t>& ranks = lines[i].ranks;
    absl::StrAppend(&text, i == 0 ? "" : ", ", RanksInWords(ranks),
                    PluralForm(ranks.size(), " is in ", " are in "), lines[i].words);
  }
  return absl::StrCat(text, ": ", who);
}

}  // namespace rollcall
