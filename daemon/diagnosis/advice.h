// SPDX-License-Identifier: Apache-2.0
// The advice for a verdict: one table from patterns to advice. advice_test.cc writes
// docs/advice.md from the table.
#pragma once

#include <vector>

#include "daemon/model/verdict.h"

namespace rollcall {

struct AdviceEntry {
  const char* id;  // as in incident.json; never changes
  bool (*fits)(const Verdict&);
  const char* seen;  // the pattern in words
  const char* why;   // the reason for the pattern
  const char* text;  // what to check and what to change
};

// The advice for a verdict, best match first: up to three known mistakes, then the
// general advice for the cause. Never empty.
std::vector<Advice> AdviceFor(const Verdict& verdict);

// The tables, for the documentation and its test: known mistakes (most specific first),
// and one entry for each cause.
const std::vector<AdviceEntry>& KnownMistakes();
const std::vector<AdviceEntry>& GeneralAdvice();

}  // namespace rollcall
