// SPDX-License-Identifier: Apache-2.0
// PipelineFaults(): sends and receives without their other ends that one wrong rank explains.
#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "faults.h"
#include "past_jobs.h"

namespace rollcall::corpus {
namespace {

using Kind = Step::Kind;

constexpr int64_t kCompute = 30'000'000;

Step Simple(Kind kind, int comm = -1, int64_t ns = 0) {
  Step step;
  step.kind = kind;
  step.comm = comm;
  step.ns = ns;
  return step;
}

Step Exchange(std::vector<CallArgs> ops) {
  Step step = Simple(Kind::kP2p, 0);
  step.p2p = std::move(ops);
  return step;
}

CallArgs Message(Op op, int peer) { return {op, 7, kNoReduction, peer, 4096}; }

Step Barrier() {
  Step step = Simple(Kind::kCall, 0);
  step.args = {Op::kAllReduce, 7, 0, kNoPeer, 1};
  return step;
}

// One step of a stage: all micro-batches go forward, and then back.
void AddStep(int rank, int ranks, int batches, Program* program) {
  program->push_back(Simple(Kind::kCompute, -1, kCompute));
  for (const bool forward : {true, false}) {
    const int from = forward ? rank - 1 : rank + 1, to = forward ? rank + 1 : rank - 1;
    for (int batch = 0; batch < batches; ++batch) {
      if (from >= 0 && from < ranks) program->push_back(Exchange({Message(Op::kRecv, from)}));
      if (to >= 0 && to < ranks) program->push_back(Exchange({Message(Op::kSend, to)}));
    }
  }
  program->push_back(Simple(Kind::kSync));
}

// A pipeline with a barrier after its loop.
struct Stages {
  int ranks = 0, batches = 0, steps = 0;
  int wrong = -1;         // a rank,
  int batches_of_it = 0;  // its micro-batches,
  int steps_of_it = 0;    // and its steps
};

void MakeStages(Random& random, const Stages& stages, Case* c) {
  c->plan = JobPlan();
  JobPlan& plan = c->plan;
  plan.ranks = stages.ranks;
  plan.ranks_per_host = Chance(random, 50) ? 8 : 1;
  plan.layout = absl::StrCat("stages", stages.ranks);
  plan.comms.push_back({"pp", {}});
  for (int rank = 0; rank < stages.ranks; ++rank) {
    plan.comms[0].ranks.push_back(rank);
    const bool wrong = rank == stages.wrong;
    Program program = {Simple(Kind::kInit, 0), Barrier(), Simple(Kind::kSync)};
    for (int step = 0; step < (wrong ? stages.steps_of_it : stages.steps); ++step) {
      AddStep(rank, stages.ranks, wrong ? stages.batches_of_it : stages.batches, &program);
    }
    program.push_back(Barrier());
    program.push_back(Simple(Kind::kSync));
    program.push_back(Simple(Kind::kDestroy, 0));
    program.push_back(Simple(Kind::kExit));
    plan.programs.push_back(std::make_shared<Program>(std::move(program)));
  }
  c->truth.culprits = {stages.wrong};
}

Stages ChooseStages(Random& random) {
  Stages stages;
  stages.ranks = 4 + static_cast<int>(Below(random, 5));
  stages.batches = 2 + static_cast<int>(Below(random, 3));
  stages.steps = 30;
  stages.wrong = static_cast<int>(Below(random, static_cast<uint64_t>(stages.ranks)));
  stages.batches_of_it = stages.batches;
  stages.steps_of_it = stages.steps;
  return stages;
}

bool LeaveStages(Random& random, int, Case* c) {
  Stages stages = ChooseStages(random);
  stages.steps_of_it = 22 + static_cast<int>(Below(random, 8));
  MakeStages(random, stages, c);
  return true;
}

// A stage between two others that handles fewer micro-batches than they do.
bool FewerBatches(Random& random, int, Case* c) {
  Stages stages = ChooseStages(random);
  stages.steps = stages.steps_of_it = 6;
  if (stages.wrong == 0 || stages.wrong == stages.ranks - 1) return false;
  stages.batches_of_it =
      1 + static_cast<int>(Below(random, static_cast<uint64_t>(stages.batches - 1)));
  MakeStages(random, stages, c);
  return true;
}

// One rank alone sends to all others, which go on with their step.
bool ScatterAlone(Random& random, int, Case* c) {
  Habits habits;
  habits.ranks = 3 + static_cast<int>(Below(random, 6));
  habits.steps = 20;
  LongJob job = MakeSteps(random, habits);
  c->plan = std::move(job.plan);
  const int rank = static_cast<int>(Below(random, static_cast<uint64_t>(habits.ranks)));
  std::vector<CallArgs> sends;
  for (int peer = 0; peer < habits.ranks; ++peer) {
    if (peer != rank) sends.push_back(Message(Op::kSend, peer));
  }
  Program* program = c->plan.Own(rank);
  const size_t at = job.steps[1 + Below(random, 18)];
  program->insert(program->begin() + static_cast<std::ptrdiff_t>(at), Exchange(std::move(sends)));
  c->truth.culprits = {rank};
  return true;
}

bool JudgeOneWrong(Case* c) {
  c->truth.hangs = true;
  c->truth.causes = {Cause::kUnmatchedP2p};
  c->truth.most = Certainty::kLikely;
  // Without markers the evidence does not always show in which call a rank waits; lost records are
  // a lost past.
  if (!c->sight.markers || c->sight.lost_records_percent != 0) {
    c->truth.causes.insert({Cause::kDeadlock, Cause::kStalledInFlight});
    c->truth.culprits_among = true;
    if (!c->sight.markers) c->truth.culprits.clear();
  }
  return !c->timeline.all_ended;
}

}  // namespace

std::vector<Fault> PipelineFaults() {
  return {
      {"stage_left_loop", 0, LeaveStages, JudgeOneWrong},
      {"stage_with_fewer_batches", 0, FewerBatches, JudgeOneWrong},
      {"scatter_alone", 0, ScatterAlone, JudgeOneWrong},
  };
}

}  // namespace rollcall::corpus
