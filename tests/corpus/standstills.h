// SPDX-License-Identifier: Apache-2.0
// Generated jobs without a recorded call: what two samples of the stacks of each rank show, and the
// right answer. A case depends on nothing but its seed.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"

namespace rollcall::corpus {

struct StandCase {
  std::string kind;  // "ring"
  JobState job;
  int64_t now_ns = 0;
  bool hangs = false;      // false: there must be no verdict
  std::set<int> culprits;  // empty if the evidence singles out no rank
  bool unseen = false;     // to name no rank, or all, is right, too
  Certainty most = Certainty::kLikely;
};

const std::vector<std::string>& StandstillKinds();
const std::vector<std::string>& HealthyStandKinds();

// `kind`: one of StandstillKinds(); empty means the seed chooses.
StandCase MakeStandstill(uint64_t seed, const std::string& kind = "");
// Looks like a standstill, and is not: something moves, sleeps, or waits for work.
StandCase MakeHealthyStand(uint64_t seed, const std::string& kind = "");

struct StandScore {
  bool found = false;     // there is a verdict
  bool right = false;     // cause and culprits, or no report where nothing hangs
  bool too_sure = false;  // more certain than the evidence, or `likely` of wrong ranks
};

// `verdicts`: the answer of Diagnose() for the case.
StandScore ScoreStandstill(const StandCase& c, const std::vector<Verdict>& verdicts);

}  // namespace rollcall::corpus
