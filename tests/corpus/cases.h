// SPDX-License-Identifier: Apache-2.0
// Generated cases: a job, what is wrong with it, how well it can be seen, and
// what a right answer is. A case is made from its seed and nothing else.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "agents.h"
#include "daemon/model/verdict.h"
#include "job_plan.h"
#include "timeline.h"

namespace rollcall::corpus {

// What a right answer is, as far as the evidence of the case allows one.
struct Truth {
  bool hangs = false;           // or contradicts itself; false: no incident may be confirmed
  std::set<Cause> causes;       // any of these
  std::set<int> culprits;       // global ranks; empty: nobody can be told apart
  bool culprits_among = false;  // the verdict may name more: all of a cycle
  bool several = false;         // each may have a verdict of its own
  bool some_lost = false;       // it may name fewer: records of the others are lost
  bool unseen = false;          // a guess that names nobody is all that can be asked for
  // First divergence, where there is one.
  int comm = -1;
  uint64_t position = 0;
  DivergenceKind divergence = DivergenceKind::kNone;
  Certainty most = Certainty::kCertain;
  int straggler = -1;  // a rank that a warning must name
};

struct Case {
  uint64_t seed = 0;
  std::string name;   // "0000042-rank_died-dp4-tp2-pp1-ep1"
  std::string fault;  // "" for a healthy job
  JobPlan plan;
  Timeline timeline;
  Sight sight;
  Truth truth;
};

const std::vector<std::string>& FaultNames();

// `fault`: one of FaultNames(); "" for one that the seed chooses.
Case MakeFault(uint64_t seed, int most_ranks, const std::string& fault = "");

// A job that only looks bad: slow ranks, long pauses, late agents, lost records.
Case MakeHealthy(uint64_t seed, int most_ranks);

struct Score {
  bool confirmed = false;
  bool cause = false, culprits = false, divergence = false;  // right
  bool has_divergence = false;                               // there is one to find
  bool kind = false;  // extra, skipped, ...: may not be told yet when the job stops there
  bool certain = false;
  bool wrong_certain = false;
  bool straggler = true;
  bool right() const { return cause && culprits && divergence && !wrong_certain && straggler; }
};

Score ScoreOf(const Case& c, const Outcome& outcome);

}  // namespace rollcall::corpus
