// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/advice.h"

namespace rollcall {
namespace {

// A person on call reads no more than this.
constexpr size_t kMostKnownMistakes = 3;

}  // namespace

std::vector<Advice> AdviceFor(const Verdict& verdict) {
  std::vector<Advice> advice;
  for (const AdviceEntry& entry : KnownMistakes()) {
    if (advice.size() < kMostKnownMistakes && entry.fits(verdict)) {
      advice.push_back({entry.id, entry.text});
    }
  }
  for (const AdviceEntry& entry : GeneralAdvice()) {
    if (entry.fits(verdict)) advice.push_back({entry.id, entry.text});
  }
  return advice;
}

}  // namespace rollcall
