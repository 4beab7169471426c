// SPDX-License-Identifier: Apache-2.0
#include "past_jobs.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace rollcall::corpus {
namespace {

using Kind = Step::Kind;

constexpr uint8_t kFloat32 = 7;

CallArgs Collective(Op op, uint64_t count) {
  const bool reduces = op == Op::kAllReduce || op == Op::kReduceScatter;
  return {op, kFloat32, reduces ? uint8_t{0} : kNoReduction, op == Op::kBroadcast ? 0 : kNoPeer,
          count};
}

Step Simple(Kind kind, int comm = -1, int64_t ns = 0) {
  Step step;
  step.kind = kind;
  step.comm = comm;
  step.ns = ns;
  return step;
}

Step Call(int comm, const CallArgs& args) {
  Step step = Simple(Kind::kCall, comm);
  step.args = args;
  return step;
}

// The calls of one step: what DDP, FSDP or ZeRO make of a few layers.
std::vector<CallArgs> CallsOfStep(Random& random, int* wanted) {
  const int kind = static_cast<int>(Below(random, 3));
  const int parts = 1 + static_cast<int>(Below(random, kind == 0 ? 6 : 4));
  std::vector<CallArgs> calls;
  const bool equal = kind == 1 && Chance(random, 50);  // layers of one size
  const auto size = [&](int part) { return uint64_t{1} << (16 + (equal ? 0 : part)); };
  if (kind != 0) {
    for (int i = 0; i < parts; ++i) calls.push_back(Collective(Op::kAllGather, size(i)));
  }
  for (int i = parts - 1; i >= 0; --i) {
    if (kind == 1) calls.push_back(Collective(Op::kAllGather, size(i)));
    calls.push_back(Collective(kind == 0 ? Op::kAllReduce : Op::kReduceScatter, size(i)));
  }
  if (Chance(random, 30)) calls.push_back(Collective(Op::kAllReduce, 1));  // the norm
  *wanted = static_cast<int>(calls.size());
  return calls;
}

bool IsEvaluation(Random& random, const Habits& habits, int step) {
  if (habits.any_time) return Chance(random, 12);
  return habits.evaluate_every != 0 && (step + 1) % habits.evaluate_every == 0;
}

void FinishPlan(LongJob* job, const Program& program) {
  for (int rank = 0; rank < job->plan.ranks; ++rank) {
    job->plan.programs.push_back(std::make_shared<Program>(program));
  }
}

void AddWorld(int ranks, Random& random, JobPlan* plan) {
  plan->ranks = ranks;
  plan->ranks_per_host = Chance(random, 50) ? 8 : 1;
  plan->comms.push_back({"default_pg", {}});
  for (int rank = 0; rank < ranks; ++rank) plan->comms[0].ranks.push_back(rank);
}

}  // namespace

LongJob MakeSteps(Random& random, Habits habits) {
  LongJob job;
  AddWorld(habits.ranks, random, &job.plan);
  job.plan.layout = absl::StrCat("dp", habits.ranks);
  std::vector<CallArgs> calls = CallsOfStep(random, &habits.calls);
  const auto compute_ns = static_cast<int64_t>(25'000'000 + Below(random, 60'000'000));
  Program program = {Simple(Kind::kInit, 0)};
  program.push_back(Call(0, Collective(Op::kAllGather, 8)));
  program.push_back(Call(0, Collective(Op::kBroadcast, 1 << 22)));
  // DDP builds its buckets anew after the first step.
  for (size_t i = 0; i < 1 + Below(random, 6); ++i) {
    program.push_back(Call(0, Collective(Op::kAllReduce, 1000 + Below(random, 1000))));
  }
  for (int step = 0; step < habits.steps; ++step) {
    job.steps.push_back(program.size());
    program.push_back(Simple(Kind::kCompute, -1, compute_ns));
    if (habits.irregular) {
      calls.clear();
      const Op ops[] = {Op::kAllReduce, Op::kAllGather, Op::kReduceScatter, Op::kBroadcast};
      for (size_t i = 0; i < 1 + Below(random, 6); ++i) {
        calls.push_back(Collective(ops[Below(random, 4)], 1 + Below(random, 100)));
      }
    }
    const uint64_t more = habits.lengths ? Below(random, 5000) : 0;
    for (CallArgs args : calls) {
      args.count += more;
      program.push_back(Call(0, args));
    }
    program.push_back(Simple(Kind::kSync));
    if (!IsEvaluation(random, habits, step)) continue;
    program.push_back(Simple(Kind::kCompute, -1, 4 * compute_ns));
    program.push_back(Call(0, Collective(Op::kAllReduce, 2)));
    program.push_back(Call(0, Collective(Op::kBroadcast, 3)));
    program.push_back(Simple(Kind::kSync));
  }
  job.steps.push_back(program.size());
  program.push_back(Call(0, Collective(Op::kAllGather, 12345)));  // the state, to save it
  program.push_back(Call(0, Collective(Op::kAllReduce, 4)));      // a barrier
  program.push_back(Simple(Kind::kSync));
  program.push_back(Simple(Kind::kDestroy, 0));
  program.push_back(Simple(Kind::kExit));
  FinishPlan(&job, program);
  job.habits = habits;
  return job;
}

LongJob MakeExchanges(Random& random, Traffic traffic, int ranks, int steps) {
  LongJob job;
  AddWorld(ranks, random, &job.plan);
  job.plan.layout = absl::StrCat("exchange", ranks);
  const int p2p = Chance(random, 50) ? 0 : 1;  // on the same communicator, or on another one
  if (p2p == 1) job.plan.comms.push_back({"pp", job.plan.comms[0].ranks});
  // The ring of a rank must hold the calls of a tick.
  const auto compute_ns = static_cast<int64_t>(50'000'000 + Below(random, 60'000'000));
  const int messages = traffic == Traffic::kChain ? 1 + static_cast<int>(Below(random, 4)) : 1;
  const int buckets = 1 + static_cast<int>(Below(random, 4));
  const int evaluate_every = Chance(random, 50) ? 3 + static_cast<int>(Below(random, 4)) : 0;
  for (int rank = 0; rank < ranks; ++rank) {
    Program program = {Simple(Kind::kInit, 0)};
    if (p2p == 1) program.push_back(Simple(Kind::kInit, 1));
    program.push_back(Call(0, Collective(Op::kBroadcast, 1 << 20)));
    const auto message = [](Op op, int peer) {
      return CallArgs{op, kFloat32, kNoReduction, peer, 4096};
    };
    const auto exchange = [&](std::vector<CallArgs> ops) {
      Step step = Simple(Kind::kP2p, p2p);
      step.p2p = std::move(ops);
      program.push_back(step);
    };
    for (int step = 0; step < steps; ++step) {
      if (rank == 0) job.steps.push_back(program.size());
      program.push_back(Simple(Kind::kCompute, -1, compute_ns));
      const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
      if (traffic == Traffic::kRing)
        exchange({message(Op::kSend, next), message(Op::kRecv, before)});
      for (int m = 0; m < messages && traffic == Traffic::kChain; ++m) {
        if (rank > 0) exchange({message(Op::kRecv, rank - 1)});
        if (rank + 1 < ranks) exchange({message(Op::kSend, rank + 1)});
      }
      if (traffic == Traffic::kAllToAll) {
        std::vector<CallArgs> ops;
        for (int peer = 0; peer < ranks; ++peer) {
          if (peer == rank) continue;
          ops.push_back(message(Op::kSend, peer));
          ops.push_back(message(Op::kRecv, peer));
        }
        exchange(std::move(ops));
      }
      for (int bucket = 0; bucket < buckets; ++bucket) {
        program.push_back(Call(0, Collective(Op::kAllReduce, uint64_t{1} << (18 + bucket))));
      }
      program.push_back(Simple(Kind::kSync));
      if (evaluate_every == 0 || (step + 1) % evaluate_every != 0) continue;
      program.push_back(Call(0, Collective(Op::kAllReduce, 1)));
      program.push_back(Simple(Kind::kSync));
    }
    if (p2p == 1) program.push_back(Simple(Kind::kDestroy, 1));
    program.push_back(Simple(Kind::kDestroy, 0));
    program.push_back(Simple(Kind::kExit));
    job.plan.programs.push_back(std::make_shared<Program>(std::move(program)));
  }
  job.habits.ranks = ranks;
  job.habits.steps = steps;
  job.habits.evaluate_every = evaluate_every;
  return job;
}

}  // namespace rollcall::corpus
