// SPDX-License-Identifier: Apache-2.0
// The advice for a verdict: tables from patterns to advice. advice_test.cc writes docs/advice.md
// from the tables.
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

// Returns the advice for a verdict, best match first: up to three known mistakes, then the general
// advice for the cause. Known mistakes are guesses, and their text admits it, except for those that
// rest on facts. Empty for consequences: their root has the advice.
std::vector<Advice> AdviceFor(const Verdict& verdict);

// Returns the tables, for the documentation and its test, each with the most specific entry first.
const std::vector<AdviceEntry>& FactAdvice();   // by what is known of the culprits' processes
const std::vector<AdviceEntry>& StackAdvice();  // by what the culprits' stacks show
// Advice by what the ranks of a job wait in that stands still outside of recorded calls.
const std::vector<AdviceEntry>& StandstillAdvice();
// Advice by the shape of the calls. Entries with the id of one of StackAdvice() stand in for it.
const std::vector<AdviceEntry>& CallAdvice();
const std::vector<AdviceEntry>& GeneralAdvice();  // one entry for each cause

}  // namespace rollcall
