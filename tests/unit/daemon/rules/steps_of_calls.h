// SPDX-License-Identifier: Apache-2.0
// A job whose ranks repeat their calls, so that each has a past, and words for what rules say of
// it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "job_builder.h"

namespace rollcall {

using Ranks = std::vector<int32_t>;

inline bool Says(const std::vector<std::string>& lines, const std::string& words) {
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
    return line.find(words) != std::string::npos;
  });
}

inline Ranks Blamed(const Verdict& verdict) {
  Ranks ranks = CulpritRanks(verdict.culprits);
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

// Ranks that make the same calls, one each 10 ms.
class StepsOfCalls {
 public:
  explicit StepsOfCalls(int ranks) : job(ranks), all_(JobBuilder::Ranks(0, ranks)) {}

  // All ranks make a call, which ends.
  void Call(CallArgs args) { job.Finish(all_, 1, args, Next()); }
  // These ranks enter a call, which does not end.
  void Enter(const std::vector<int>& ranks, CallArgs args) { job.Enter(ranks, Next(), args); }

  JobBuilder job;

 protected:
  // The time of the next call.
  int64_t Next() {
    seconds_ += 0.01;
    return At(seconds_);
  }

 private:
  std::vector<int> all_;
  double seconds_ = 0;
};

}  // namespace rollcall
