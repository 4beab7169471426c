// SPDX-License-Identifier: Apache-2.0
// Generated cases: a job, its fault, how much the agents see of it, and the right
// answer. A case depends on nothing but its seed.
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

// The right answer, as far as the evidence of the case allows one.
struct Truth {
  bool hangs = false;           // or contradicts itself; false: there must be no incident
  std::set<Cause> causes;       // any of these is right
  std::set<int> culprits;       // global ranks; empty if the evidence singles out no rank
  bool culprits_among = false;  // the verdict may name more ranks: all of a cycle
  bool several = false;         // each culprit may have a verdict of its own
  bool some_lost = false;       // the verdict may name fewer: records of the others are lost
  bool unseen = false;          // a guess without a culprit is right, too
  std::set<int> also;           // right, too, but never certain; empty if there is none
  // The first divergence, if there is one.
  int comm = -1;
  uint64_t position = 0;
  DivergenceKind divergence = DivergenceKind::kNone;
  Certainty most = Certainty::kCertain;  // the highest certainty that is right
  int straggler = -1;                    // a rank that a warning must name
  bool various_lengths = false;          // every step of the job has other lengths
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

// `fault`: one of FaultNames(); empty means the seed chooses the fault.
Case MakeFault(uint64_t seed, int most_ranks, const std::string& fault = "");

// A healthy job that is hard to judge: slow ranks, long pauses, late agents, lost records.
Case MakeHealthy(uint64_t seed, int most_ranks);

// Lets each process hold several ranks, which changes no right answer. False, and no change: a rank
// ends before the others, which takes a process of its own.
bool HoldSeveral(int ranks_per_process, Case* c);

struct Score {
  bool confirmed = false;
  bool cause = false, culprits = false, divergence = false;  // true: right
  bool has_divergence = false;                               // the case has a divergence
  // The kind of divergence (extra, skipped, ...) is right. It may be unknown if the job stops
  // at the divergence.
  bool kind = false;
  bool certain = false;
  bool wrong_certain = false;
  bool wrong_likely = false;  // a `likely` verdict names ranks that the case does not accept
  bool straggler = true;
  bool right() const { return cause && culprits && divergence && !wrong_certain && straggler; }
};

Score ScoreOutcome(const Case& c, const Outcome& outcome);

}  // namespace rollcall::corpus
