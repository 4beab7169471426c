// SPDX-License-Identifier: Apache-2.0
// What to do about a verdict: one table from patterns to advice. The table
// generates docs/advice.md.
#pragma once

#include <vector>

#include "daemon/model/verdict.h"

namespace rollcall {

struct AdviceEntry {
  const char* id;  // as in incident.json; never changed
  bool (*fits)(const Verdict&);
  const char* seen;  // the pattern in words
  const char* why;   // what is behind it
  const char* text;  // what to look at, what to change
};

// The best match first: up to three known mistakes, then the general advice for the
// cause. Never empty.
std::vector<Advice> AdviceFor(const Verdict& verdict);

// The tables, for the documentation and its test: known mistakes, the most
// specific first, and one entry for each cause.
const std::vector<AdviceEntry>& KnownMistakes();
const std::vector<AdviceEntry>& GeneralAdvice();

}  // namespace rollcall
