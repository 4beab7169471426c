// SPDX-License-Identifier: Apache-2.0
// ThreadFaults(): calls without a fixed order, because two threads of each process make them. No
// rank is at fault, so a verdict that names one is `likely` at most.
#include <algorithm>
#include <set>

#include "daemon/words/alignment.h"
#include "faults.h"
#include "past_jobs.h"

namespace rollcall::corpus {
namespace {

using Kind = Step::Kind;

constexpr uint32_t kBackground = 2;

LongJob MakeTraining(Random& random, Case* c) {
  Habits habits;
  habits.ranks = 2 + static_cast<int>(Below(random, 7));
  habits.steps = 12 + static_cast<int>(Below(random, 10));
  LongJob job = MakeSteps(random, habits);
  c->plan = job.plan;
  return job;
}

// The indices of a rank's calls in one step of the job.
std::vector<size_t> CallsOfStep(const LongJob& job, int rank, size_t step) {
  const Program& program = *job.plan.programs[static_cast<size_t>(rank)];
  std::vector<size_t> calls;
  for (size_t i = job.steps[step]; i < job.steps[step + 1]; ++i) {
    if (program[i].kind == Kind::kCall && program[i].comm == 0) calls.push_back(i);
  }
  return calls;
}

// A thread in the background gathers over the communicator of the training: an asynchronous
// checkpoint. It gets its turn somewhere in the step, on each rank somewhere else.
bool GatherInTheBackground(Random& random, int, Case* c) {
  const LongJob job = MakeTraining(random, c);
  const size_t step = 2 + Below(random, job.steps.size() - 4);
  std::set<size_t> turns;
  for (int rank = 0; rank < c->plan.ranks; ++rank) {
    const std::vector<size_t> calls = CallsOfStep(job, rank, step);
    if (calls.size() < 2) return false;
    const size_t turn = Below(random, calls.size());
    turns.insert(turn);
    Program* program = c->plan.Own(rank);
    const auto at = program->begin() + static_cast<std::ptrdiff_t>(calls[turn]);
    Step gather = *at;
    gather.args = {Op::kAllGather, 7, kNoReduction, kNoPeer, 4321};
    gather.thread = kBackground;
    program->insert(at, gather);
  }
  return turns.size() > 1;
}

// Two threads share the calls of a step, without a lock.
bool ShareTheCalls(Random& random, int, Case* c) {
  const LongJob job = MakeTraining(random, c);
  const size_t step = 2 + Below(random, job.steps.size() - 4);
  bool differs = false;
  for (int rank = 0; rank < c->plan.ranks; ++rank) {
    const std::vector<size_t> calls = CallsOfStep(job, rank, step);
    if (calls.size() < 2) return false;
    Program* program = c->plan.Own(rank);
    // The odd ones are the other thread's.
    for (size_t i = 1; i < calls.size(); i += 2) (*program)[calls[i]].thread = kBackground;
    if (!Chance(random, 50)) continue;
    Step& first = (*program)[calls[0]];
    Step& second = (*program)[calls[1]];
    differs = differs || !SameCall(first.args, second.args);
    std::swap(first, second);
  }
  return differs;
}

bool JudgeNobody(Case* c) {
  c->truth.hangs = true;
  c->truth.causes = {Cause::kConcurrentUse, Cause::kOperationMismatch, Cause::kArgumentMismatch};
  c->truth.culprits.clear();
  c->truth.culprits_among = true;
  c->truth.most = Certainty::kLikely;
  return !c->timeline.all_ended;
}

}  // namespace

std::vector<Fault> ThreadFaults() {
  return {
      {"thread_gathers", 0, GatherInTheBackground, JudgeNobody},
      {"threads_share_calls", 0, ShareTheCalls, JudgeNobody},
  };
}

}  // namespace rollcall::corpus
