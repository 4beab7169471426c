// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/advice.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/diagnosis/advice_departures.h"
#include "daemon/diagnosis/advice_patterns.h"
#include "daemon/words/places.h"

namespace rollcall {
namespace {

// A person on call reads no more than this.
constexpr size_t kMostKnownMistakes = 3;
constexpr char kByStack[] = "Guess from the stack: ";
constexpr char kByCalls[] = "Guess from the calls: ";
constexpr absl::string_view kException = "handles-an-exception";
constexpr absl::string_view kSkippedCall = "skipped-call", kExtraCall = "extra-call",
                            kUnevenInputs = "uneven-inputs", kLateRank = "late-rank",
                            kInitOrder = "init-order", kRank0OnlySetup = "rank0-only-setup";

// What the sentence of the verdict rules out.
bool Contradicts(const Verdict& verdict, absl::string_view id) {
  if (!IsContradiction(verdict.cause)) return false;
  switch (verdict.divergence) {
    case DivergenceKind::kExtra:
      return id == kSkippedCall || id == kUnevenInputs;
    case DivergenceKind::kSkipped:
      return id == kExtraCall;
    case DivergenceKind::kSwapped:
      return id == kSkippedCall || id == kExtraCall || id == kUnevenInputs;
    case DivergenceKind::kReplaced:
    case DivergenceKind::kNone:
      break;
  }
  return false;
}

// The text as it goes on after a colon. A name such as "CommAbort" keeps its capital.
std::string AfterColon(absl::string_view text) {
  std::string result(text);
  const absl::string_view word = text.substr(0, text.find(' '));
  const bool is_name = std::any_of(word.begin() + (word.empty() ? 0 : 1), word.end(),
                                   [](char c) { return !absl::ascii_islower(c); });
  if (!is_name && !result.empty()) result[0] = absl::ascii_tolower(result[0]);
  return result;
}

void AddIfFits(const Verdict& verdict, const AdviceEntry& entry, const char* before,
               std::vector<Advice>* advice) {
  if (advice->size() == kMostKnownMistakes || Contradicts(verdict, entry.id)) return;
  const bool is_known = std::any_of(advice->begin(), advice->end(),
                                    [&](const Advice& known) { return known.id == entry.id; });
  if (is_known || !entry.fits(verdict)) return;
  const bool has_head = before[0] != '\0';
  advice->push_back({entry.id, has_head ? absl::StrCat(before, AfterColon(entry.text))
                                        : std::string(entry.text)});
}

void AddFitting(const Verdict& verdict, const std::vector<AdviceEntry>& table, const char* before,
                std::vector<Advice>* advice) {
  for (const AdviceEntry& entry : table) AddIfFits(verdict, entry, before, advice);
}

// An absent rank that is past the others' line and waits for no rank may come to its own call
// later: where one rank goes first and the others wait for it, say. What it does there is more
// telling.
bool MayYetCome(const Verdict& verdict) {
  return Is(verdict, Cause::kMissingRank) && !WaitsForRanks(verdict) && SkippedByStacks(verdict);
}
bool HasSkipped(const Verdict& verdict) { return SkippedByStacks(verdict) && !MayYetCome(verdict); }

void AddStackAdvice(const Verdict& verdict, bool of_skipped_calls, std::vector<Advice>* advice) {
  for (const AdviceEntry& entry : StackAdvice()) {
    if ((entry.id == kSkippedCall) == of_skipped_calls) {
      AddIfFits(verdict, entry, kByStack, advice);
    }
  }
}

// A rank that left the loop or a step in a handler did so by an exception.
bool LeftByAnException(const Verdict& verdict) {
  return HandlesAnException(verdict) && (KnowsTheException(verdict) || !CallsAlone(verdict));
}

// Two stacks show more than what the culprit does: who has left the loop may well log or save.
void AddByComparison(const Verdict& verdict, std::vector<Advice>* advice) {
  for (const auto& [shows, id] :
       {std::pair(LeftByAnException, kException), std::pair(HasSkipped, kSkippedCall),
        std::pair(LeftTheLoopByStacks, kUnevenInputs)}) {
    if (!shows(verdict)) continue;
    for (const AdviceEntry& entry : StackAdvice()) {
      if (id == entry.id) AddIfFits(verdict, entry, kByStack, advice);
    }
  }
}

// The lines of ranks show which call one has left out only where all make the same calls.
bool MayCompare(const Verdict& verdict) {
  switch (verdict.standstill.in) {
    case StandKind::kJax:
    case StandKind::kJaxBarrier:
    case StandKind::kJaxEnd:
    case StandKind::kMpi:
    case StandKind::kGloo:
    case StandKind::kTorch:
      return true;
    default:
      return !Is(verdict, Cause::kStandstill);
  }
}

// The first guess by the stack begins with what one side does and the other does not.
void TellDeparture(const Verdict& verdict, std::vector<Advice>* advice) {
  const std::string departure = DepartureInWords(verdict);
  const auto first = std::find_if(advice->begin(), advice->end(), [](const Advice& known) {
    return absl::StartsWith(known.text, kByStack);
  });
  if (departure.empty() || first == advice->end()) return;
  const size_t at = std::strlen(kByStack);
  first->text[at] = absl::ascii_toupper(first->text[at]);
  first->text.insert(at, departure + ". ");
}

// That a rank works, and that the job is still in its first calls, is more than a shape of calls.
bool HoldsBesideStacks(absl::string_view id) {
  return id == kLateRank || id == kInitOrder || id == kRank0OnlySetup;
}

// The shape of the calls is a weaker guess than a stack.
void AddByCalls(const Verdict& verdict, bool stacks_fit, std::vector<Advice>* advice) {
  for (const AdviceEntry& entry : CallAdvice()) {
    if (stacks_fit && !HoldsBesideStacks(entry.id)) continue;
    AddIfFits(verdict, entry, kByCalls, advice);
  }
}

// The first call of all differs: a set-up that differs explains more than one call too many. That
// one rank has gone past the others' line is more telling.
void AddFirstCall(const Verdict& verdict, std::vector<Advice>* advice) {
  if (!IsContradiction(verdict.cause) || verdict.position != 0) return;
  if (HasSkipped(verdict)) return;
  for (const AdviceEntry& entry : CallAdvice()) {
    if (entry.id == kRank0OnlySetup) AddIfFits(verdict, entry, kByCalls, advice);
  }
}

}  // namespace

std::vector<Advice> AdviceFor(const Verdict& verdict) {
  std::vector<Advice> advice;
  if (verdict.is_consequence) return advice;
  AddFitting(verdict, FactAdvice(), "", &advice);
  // What the ranks called shows nothing where their threads took turns by chance, or where they
  // wait for a request.
  if (!verdict.unordered_threads && !verdict.is_idle) {
    const size_t facts = advice.size();
    const bool may_yet_come = MayYetCome(verdict);
    AddFirstCall(verdict, &advice);
    if (MayCompare(verdict)) AddByComparison(verdict, &advice);
    AddStackAdvice(verdict, false, &advice);
    AddFitting(verdict, StandstillAdvice(), kByStack, &advice);
    if (!may_yet_come && MayCompare(verdict)) AddStackAdvice(verdict, true, &advice);
    AddByCalls(verdict, may_yet_come || advice.size() > facts, &advice);
    if (may_yet_come) AddStackAdvice(verdict, true, &advice);
    if (MayCompare(verdict)) TellDeparture(verdict, &advice);
  }
  for (const AdviceEntry& entry : GeneralAdvice()) {
    if (entry.fits(verdict)) advice.push_back({entry.id, entry.text});
  }
  return advice;
}

}  // namespace rollcall
