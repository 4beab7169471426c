// SPDX-License-Identifier: Apache-2.0
#include "daemon/words/mismatch_sentences.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/words/alignment.h"
#include "daemon/words/fit_sentence.h"
#include "daemon/words/sentence_parts.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr size_t kNamedSides = 6;      // different calls of a mismatch
constexpr size_t kLongestSides = 240;  // in bytes, with a handful of ranks each
constexpr size_t kNamedRanksOfSide = 4;
constexpr size_t kLeastSides = 2;

// The culprits, grouped by their call: at most kNamedSides groups. `*others`: the culprits with
// other calls.
std::vector<std::vector<Culprit>> BySide(const std::vector<Culprit>& culprits,
                                         std::vector<int32_t>* others) {
  std::vector<std::vector<Culprit>> sides;
  for (const Culprit& culprit : culprits) {
    auto side = std::find_if(sides.begin(), sides.end(), [&](const std::vector<Culprit>& s) {
      return SameCall(s.front().call, culprit.call);
    });
    if (side == sides.end() && sides.size() == kNamedSides) {
      others->push_back(culprit.rank);
      continue;
    }
    if (side == sides.end()) side = sides.insert(sides.end(), std::vector<Culprit>());
    side->push_back(culprit);
  }
  return sides;
}

bool IsTie(const std::vector<std::vector<Culprit>>& sides, const Verdict& v) {
  return std::any_of(sides.begin(), sides.end(), [&v](const std::vector<Culprit>& side) {
    return SameCall(side.front().call, v.call);
  });
}

// "rank 3 called Broadcast(...)" for each side that has room, two at least. The ranks of the others
// join `*unnamed`.
std::vector<std::string> SidesInWords(const Verdict& v,
                                      const std::vector<std::vector<Culprit>>& sides, bool one_side,
                                      std::vector<int32_t>* unnamed) {
  std::vector<std::string> parts;
  size_t length = 0;
  for (const std::vector<Culprit>& side : sides) {
    const std::string part =
        absl::StrCat(one_side ? Subject(v) : Who(side), " called ", CallInWords(side.front().call));
    length += NameFewerRanks(part, kNamedRanksOfSide).size();
    if (parts.size() < kLeastSides || length <= kLongestSides) {
      parts.push_back(part);
      continue;
    }
    for (const Culprit& culprit : side) unnamed->push_back(culprit.rank);
  }
  return parts;
}

// The extra or skipped calls at the divergence.
std::vector<CallArgs> OnlyOnOneSide(const Verdict& v) {
  std::vector<CallArgs> calls;
  for (const AlignedCall& line : v.histories) {
    const bool extra = line.others.op == Op::kNone && v.divergence == DivergenceKind::kExtra;
    const bool skipped = line.culprits.op == Op::kNone && v.divergence == DivergenceKind::kSkipped;
    if (extra || skipped) {
      calls.push_back(extra ? line.culprits : line.others);
    } else if (!calls.empty()) {
      break;
    }
  }
  return calls;
}

// "2 calls, starting with Broadcast(...),".
std::string SeveralCalls(const std::vector<CallArgs>& calls, const char* noun) {
  return absl::StrCat(calls.size(), noun, ", starting with ", CallInWords(calls[0]), ",");
}

// The sentence on extra, skipped or swapped calls; "" if the kind of difference is unknown.
std::string Departure(const Verdict& v) {
  const std::string at = absl::StrCat(" at #", v.position, " on ", Where(v));
  const std::vector<CallArgs> calls = OnlyOnOneSide(v);
  if (v.divergence == DivergenceKind::kSwapped) {
    return absl::StrCat(
        Subject(v), " made the same calls as the others in a different order, starting", at, ": ",
        CallInWords(v.culprits.front().call), " where the others called ", CallInWords(v.call));
  }
  if (calls.empty()) return "";
  if (v.divergence == DivergenceKind::kExtra) {
    const std::string extra = calls.size() == 1
                                  ? absl::StrCat("an extra call, ", CallInWords(calls[0]), ",")
                                  : SeveralCalls(calls, " extra calls");
    return absl::StrCat(Subject(v), " made ", extra, at, ", where the others called ",
                        CallInWords(v.call));
  }
  const std::string skipped =
      calls.size() == 1 ? CallInWords(calls[0]) : SeveralCalls(calls, " calls");
  return absl::StrCat(Subject(v), " skipped ", skipped, at, " and called ",
                      CallInWords(v.culprits.front().call));
}

}  // namespace

std::string MismatchSentence(const Verdict& v) {
  if (v.position_end != 0) {
    return absl::StrCat(Subject(v), " made different calls from the others on ", Where(v),
                        ", starting between call #", v.position, " and call #", v.position_end,
                        WaitTail(v));
  }
  std::vector<int32_t> unnamed;
  const auto sides = BySide(v.culprits, &unnamed);
  const bool one_side = sides.size() == 1 && !SameCall(sides[0].front().call, v.call);
  const std::string departure = one_side ? Departure(v) : "";
  if (!departure.empty()) return absl::StrCat(departure, WaitTail(v));
  const bool others = !IsTie(sides, v);  // in a tie no other rank is right
  std::vector<std::string> parts = SidesInWords(v, sides, one_side, &unnamed);
  if (!unnamed.empty()) {
    parts.push_back(
        absl::StrCat(RanksInWords(unnamed),
                     PluralForm(unnamed.size(), " made another call", " made other calls")));
  }
  const std::string rest =
      others ? absl::StrCat(" where the others called ", CallInWords(v.call)) : "";
  return absl::StrCat(absl::StrJoin(parts, others ? " and " : " where "), rest, ": call #",
                      v.position, " on ", Where(v), WaitTail(v));
}

std::string UnmatchedP2pSentence(const Verdict& v) {
  if (!v.mismatched_fields.empty() && v.culprits.size() == 2) {
    const Culprit& one = v.culprits[0];
    const Culprit& two = v.culprits[1];
    return absl::StrCat(Who({one}), " called ", CallInWords(one.call), ", but ", Who({two}),
                        " called ", CallInWords(two.call), " on ", Where(v), WaitTail(v));
  }
  if (v.divergence == DivergenceKind::kExtra) {
    return absl::StrCat(Subject(v), " issued one ", EndInWords(v.call, Where(v)), " too many: no ",
                        OtherEndInWords(v.call.op), " matches it", WaitTail(v));
  }
  return absl::StrCat(Subject(v), " never issued the ", OtherEndInWords(v.call.op),
                      v.mismatched_fields.empty() ? " that matches " : " with the tag of ",
                      EndInWords(v.call, Where(v)), WaitTail(v));
}

std::string DivergenceInWords(const Alignment& alignment) {
  const auto line =
      std::find_if(alignment.lines.begin(), alignment.lines.end(),
                   [](const AlignedCall& l) { return !SameCall(l.others, l.culprits); });
  if (line == alignment.lines.end()) return "";
  const std::string more =
      alignment.length > 1 ? absl::StrCat(" (and ", alignment.length - 1, " more)") : "";
  switch (alignment.kind) {
    case DivergenceKind::kExtra:
      return absl::StrCat("without the extra ", CallInWords(line->culprits), more, " at #",
                          line->culprit_position, " the histories agree again");
    case DivergenceKind::kSkipped:
      return absl::StrCat("with the skipped ", CallInWords(line->others), more, " at #",
                          line->position, " the histories agree again");
    case DivergenceKind::kSwapped:
      return "the ranks made the same calls in a different order";
    case DivergenceKind::kReplaced:
    case DivergenceKind::kNone:
      return "";
  }
  return "";
}

}  // namespace rollcall
