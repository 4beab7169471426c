// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/advice.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/words/places.h"

namespace rollcall {
namespace {

// A person on call reads no more than this.
constexpr size_t kMostKnownMistakes = 3;
constexpr char kByStack[] = "A guess by the stack: ";

void AddFitting(const Verdict& verdict, const std::vector<AdviceEntry>& table, const char* before,
                std::vector<Advice>* advice) {
  for (const AdviceEntry& entry : table) {
    if (advice->size() == kMostKnownMistakes) return;
    const bool is_known = std::any_of(advice->begin(), advice->end(),
                                      [&](const Advice& known) { return known.id == entry.id; });
    if (is_known || !entry.fits(verdict)) continue;
    advice->push_back({entry.id, absl::StrCat(before, entry.text)});
  }
}

// The first guess by the stack begins with what one side does and the other does not.
void TellDeparture(const Verdict& verdict, std::vector<Advice>* advice) {
  if (!IsContradiction(verdict.cause)) return;
  const std::string departure = DepartureInWords(verdict);
  const auto first = std::find_if(advice->begin(), advice->end(), [](const Advice& known) {
    return absl::StartsWith(known.text, kByStack);
  });
  if (departure.empty() || first == advice->end()) return;
  first->text.insert(std::strlen(kByStack), departure + ". ");
}

}  // namespace

std::vector<Advice> AdviceFor(const Verdict& verdict) {
  std::vector<Advice> advice;
  if (verdict.is_consequence) return advice;
  AddFitting(verdict, FactAdvice(), "", &advice);
  AddFitting(verdict, StackAdvice(), kByStack, &advice);
  TellDeparture(verdict, &advice);
  AddFitting(verdict, CallAdvice(), "A guess by the calls: ", &advice);
  for (const AdviceEntry& entry : GeneralAdvice()) {
    if (entry.fits(verdict)) advice.push_back({entry.id, entry.text});
  }
  return advice;
}

}  // namespace rollcall
