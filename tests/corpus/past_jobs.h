// SPDX-License-Identifier: Apache-2.0
// Jobs with a long past: many steps after a warm-up, with accumulation, evaluations and lengths
// that change.
#pragma once

#include <vector>

#include "job_plan.h"

namespace rollcall::corpus {

// What repeats in a job. Every step begins with a kCompute.
struct Habits {
  int ranks = 2;
  int steps = 0;           // 0 if chosen
  int evaluate_every = 0;  // steps; 0 if never
  bool any_time = false;   // evaluations come at any time
  bool irregular = false;  // every step makes other calls
  bool lengths = false;    // every step has other lengths
  int calls = 0;           // of a step, once the job is made
};

struct LongJob {
  JobPlan plan;
  Habits habits;
  // The index in every rank's program at which each step begins; ranks have equal programs up to
  // the fault. The last one is the end of the loop.
  std::vector<size_t> steps;
};

// Data parallel on one communicator.
LongJob MakeSteps(Random& random, Habits habits);

enum class Traffic { kRing, kChain, kAllToAll };

// Sends and receives, then collectives in each step.
LongJob MakeExchanges(Random& random, Traffic traffic, int ranks, int steps);

}  // namespace rollcall::corpus
