// SPDX-License-Identifier: Apache-2.0
#include "daemon/words/habits.h"

#include "absl/strings/str_cat.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

// "24 steps of 3 calls"; a step of one call is that call: "24 calls".
std::string StepsInWords(size_t period, size_t steps) {
  if (period == 1) return CountInWords(steps, "call", "calls");
  return absl::StrCat(CountInWords(steps, "step", "steps"), " of ", period, " calls");
}

}  // namespace

std::string BrokenHabitInWords(const std::vector<int32_t>& ranks, const std::string& expected,
                               const std::string& made, size_t period, size_t steps) {
  const bool one = ranks.size() == 1;
  return absl::StrCat(RanksInWords(ranks), one ? " has" : " have", " called ", expected,
                      period == 1 ? " in each of " : " here in each of ", one ? "its" : "their",
                      " last ", StepsInWords(period, steps), ", and called ", made, " this time");
}

std::string SkippedInWords(int32_t rank, const std::string& call, size_t period, size_t steps) {
  return absl::StrCat(RanksInWords({rank}), " has issued ", call, " in each of its last ",
                      StepsInWords(period, steps), ", and did not this time");
}

std::string AddedInWords(int32_t rank, const std::string& call, size_t period, size_t steps) {
  return absl::StrCat(RanksInWords({rank}), " has made the same ",
                      CountInWords(period, "call", "calls"), " in each of its last ",
                      CountInWords(steps, "step", "steps"), ", and issued ", call,
                      " beyond them this time");
}

}  // namespace rollcall
