// SPDX-License-Identifier: Apache-2.0
#include "job_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace rollcall::corpus {
namespace {

constexpr uint8_t kFloat32 = 7, kFloat16 = 6, kBfloat16 = 9, kInt64 = 4;

CallArgs Collective(Op op, uint64_t count, uint8_t dtype = kFloat32, int32_t root = kNoPeer) {
  // The library does not read the reduction of a call of gloo, nor its type.
  const bool reduces =
      dtype != kNoDtype && (op == Op::kAllReduce || op == Op::kReduceScatter || op == Op::kReduce);
  return {op, dtype, reduces ? uint8_t{0} : kNoReduction, root, count};
}

// The parallel layout: global rank = ((pp * dp) + d) * tp + t.
struct Layout {
  int tp = 1, dp = 1, pp = 1, ep = 1;
  int ranks() const { return tp * dp * pp; }
};

int PowerOfTwo(Random& random, int most) {
  int value = 1;
  while (value * 2 <= most && Chance(random, 60)) value *= 2;
  return value;
}

Layout MakeLayout(Random& random, int ranks) {
  Layout layout;
  layout.tp = PowerOfTwo(random, std::min(8, ranks));
  layout.pp = PowerOfTwo(random, std::min(16, ranks / layout.tp));
  layout.dp = std::max(1, ranks / layout.tp / layout.pp);
  if (layout.ranks() < 2) layout.dp = 2;
  if (layout.dp % 2 == 0 && Chance(random, 40)) layout.ep = layout.dp % 8 == 0 ? 8 : 2;
  return layout;
}

struct Comms {
  std::vector<int> world, tp, dp, pp, ep, gloo;  // by rank: index into JobPlan::comms, or -1
};

void AddComms(const std::string& name, const std::vector<std::vector<int>>& all, JobPlan* plan,
              std::vector<int>* of_rank) {
  of_rank->assign(static_cast<size_t>(plan->ranks), -1);
  for (const std::vector<int>& ranks : all) {
    if (ranks.size() < 2) continue;
    for (const int rank : ranks) {
      (*of_rank)[static_cast<size_t>(rank)] = static_cast<int>(plan->comms.size());
    }
    plan->comms.push_back({name, ranks});
  }
}

Comms MakeComms(const Layout& l, bool has_gloo, JobPlan* plan) {
  Comms comms;
  std::vector<std::vector<int>> world(1), tp, dp, pp, ep;
  for (int rank = 0; rank < l.ranks(); ++rank) world[0].push_back(rank);
  for (int p = 0; p < l.pp; ++p) {
    for (int d = 0; d < l.dp; ++d) {
      tp.emplace_back();
      for (int t = 0; t < l.tp; ++t) tp.back().push_back((p * l.dp + d) * l.tp + t);
    }
    for (int t = 0; t < l.tp; ++t) {
      dp.emplace_back();
      for (int d = 0; d < l.dp; ++d) dp.back().push_back((p * l.dp + d) * l.tp + t);
      for (int first = 0; first < l.dp && l.ep > 1; first += l.ep) {
        ep.emplace_back();
        for (int d = first; d < first + l.ep; ++d) ep.back().push_back((p * l.dp + d) * l.tp + t);
      }
    }
  }
  for (int d = 0; d < l.dp; ++d) {
    for (int t = 0; t < l.tp; ++t) {
      pp.emplace_back();
      for (int p = 0; p < l.pp; ++p) pp.back().push_back((p * l.dp + d) * l.tp + t);
    }
  }
  AddComms("default_pg", world, plan, &comms.world);
  AddComms("tp", tp, plan, &comms.tp);
  AddComms("dp", dp, plan, &comms.dp);
  AddComms("pp", pp, plan, &comms.pp);
  AddComms("ep", ep, plan, &comms.ep);
  if (!has_gloo) world.clear();
  AddComms("gloo", world, plan, &comms.gloo);
  if (has_gloo) plan->comms.back().kind = CommKind::kGloo;
  return comms;
}

// The parameters that are equal on all ranks of a job.
struct Recipe {
  int steps = 4, microbatches = 1, buckets = 3, layers = 2;
  bool fsdp = false;
  uint64_t size = 1 << 20;
  int64_t compute_ns = 20'000'000;
  int evaluate_every = 3;
  int64_t evaluate_ns = 2 * kSecond;
  bool checkpoint = false;
};

class Writer {
 public:
  explicit Writer(Program* program) : program_(program) {}

  void Compute(int64_t ns) {
    Step step;
    step.ns = ns;
    program_->push_back(step);
  }
  void Call(int comm, const CallArgs& args) {
    if (comm < 0) return;
    Step step;
    step.kind = Step::Kind::kCall;
    step.comm = comm;
    step.args = args;
    program_->push_back(step);
  }
  void P2p(int comm, std::vector<CallArgs> ops) {
    if (comm < 0 || ops.empty()) return;
    Step step;
    step.kind = Step::Kind::kP2p;
    step.comm = comm;
    step.p2p = std::move(ops);
    program_->push_back(step);
  }
  void Simple(Step::Kind kind, int comm = -1) {
    Step step;
    step.kind = kind;
    step.comm = comm;
    program_->push_back(step);
  }

 private:
  Program* const program_;
};

CallArgs Message(Op op, int peer, uint64_t count) {
  return {op, kBfloat16, kNoReduction, peer, count};
}

// One stage of a pipeline, with the communicators of its rank.
struct Stage {
  const Recipe& recipe;
  int tp, ep, pp;
  int stage, stages;
  Writer* w;

  uint64_t message() const { return recipe.size / 8; }
  bool first() const { return stage == 0; }
  bool last() const { return stage + 1 == stages; }

  void Forward() const {
    for (int layer = 0; layer < recipe.layers; ++layer) {
      w->Compute(recipe.compute_ns / 8);
      w->Call(tp, Collective(Op::kAllReduce, recipe.size / 4, kBfloat16));
      w->Call(ep, Collective(Op::kAlltoAll, recipe.size / 16, kBfloat16));
    }
  }
  void Backward() const {
    for (int layer = 0; layer < recipe.layers; ++layer) {
      w->Compute(recipe.compute_ns / 8);
      w->Call(ep, Collective(Op::kAlltoAll, recipe.size / 16, kBfloat16));
      w->Call(tp, Collective(Op::kAllReduce, recipe.size / 4, kBfloat16));
    }
  }
  // Exchanges messages with the stage before and the stage behind. Two operations share one
  // group; otherwise both sides would send first.
  void Exchange(Op before, Op behind) const {
    std::vector<CallArgs> ops;
    if (before != Op::kNone && !first()) ops.push_back(Message(before, stage - 1, message()));
    if (behind != Op::kNone && !last()) ops.push_back(Message(behind, stage + 1, message()));
    w->P2p(pp, std::move(ops));
  }
  void ExchangeBehind() const {
    if (last()) return;
    w->P2p(pp,
           {Message(Op::kSend, stage + 1, message()), Message(Op::kRecv, stage + 1, message())});
  }
  void ExchangeBefore() const {
    if (first()) return;
    w->P2p(pp,
           {Message(Op::kSend, stage - 1, message()), Message(Op::kRecv, stage - 1, message())});
  }
};

// One forward, one backward: warm-up, steady state, cool-down.
void OneForwardOneBackward(const Stage& stage) {
  const int microbatches = stage.recipe.microbatches;
  const int warm_up = std::min(stage.stages - stage.stage - 1, microbatches);
  for (int m = 0; m < warm_up; ++m) {
    stage.Exchange(Op::kRecv, Op::kNone);
    stage.Forward();
    stage.Exchange(Op::kNone, Op::kSend);
  }
  if (warm_up < microbatches) stage.Exchange(Op::kRecv, Op::kNone);
  for (int m = warm_up; m < microbatches; ++m) {
    stage.Forward();
    stage.ExchangeBehind();
    stage.Backward();
    if (m + 1 < microbatches) {
      stage.ExchangeBefore();
    } else {
      stage.Exchange(Op::kSend, Op::kNone);
    }
  }
  for (int m = 0; m < warm_up; ++m) {
    stage.Exchange(Op::kNone, Op::kRecv);
    stage.Backward();
    stage.Exchange(Op::kSend, Op::kNone);
  }
}

void Gradients(const Recipe& r, int dp, Writer* w) {
  for (int bucket = 0; bucket < r.buckets; ++bucket) {
    const uint64_t size = r.size * static_cast<uint64_t>(bucket + 1);
    if (r.fsdp) {
      w->Call(dp, Collective(Op::kReduceScatter, size));
      w->Call(dp, Collective(Op::kAllGather, size));
    } else {
      w->Call(dp, Collective(Op::kAllReduce, size));
    }
  }
}

// A rank and its neighbour send each other messages: one after the other, or side by side. The last
// of an odd number has no neighbour.
struct Neighbours {
  int gloo, rank, ranks;
  Writer* w;

  int peer() const { return rank ^ 1; }
  bool has_peer() const { return gloo >= 0 && peer() < ranks; }
  CallArgs MessageTo(Op op) const { return {op, kNoDtype, kNoReduction, peer(), 64}; }

  void AskAndAnswer() const {
    if (!has_peer()) return;
    const bool asks = rank % 2 == 0;
    w->P2p(gloo, {MessageTo(asks ? Op::kSend : Op::kRecv)});
    w->P2p(gloo, {MessageTo(asks ? Op::kRecv : Op::kSend)});
  }
  void Exchange() const {
    if (has_peer()) w->P2p(gloo, {MessageTo(Op::kSend), MessageTo(Op::kRecv)});
  }
};

void WriteProgram(const Recipe& r, const Comms& comms, int rank, int stage, int stages,
                  Program* program) {
  const auto at = static_cast<size_t>(rank);
  const int world = comms.world[at];
  const int gloo = comms.gloo[at];
  const std::vector<int> all = {world,        comms.tp[at], comms.dp[at],
                                comms.pp[at], comms.ep[at], gloo};
  Writer w(program);
  const Neighbours neighbours = {gloo, rank, static_cast<int>(comms.world.size()), &w};
  for (const int comm : all) {
    if (comm >= 0) w.Simple(Step::Kind::kInit, comm);
  }
  w.Call(world, Collective(Op::kAllGather, 16, kInt64));  // to compare shapes
  w.Call(world, Collective(Op::kBroadcast, r.size, kFloat32, 0));
  w.Call(gloo, Collective(Op::kAllGather, 1, kNoDtype));  // of objects: their sizes, then they
  w.Call(gloo, Collective(Op::kAllGather, 512, kNoDtype));
  w.Simple(Step::Kind::kSync);
  for (int step = 0; step < r.steps; ++step) {
    w.Compute(step == 0 ? r.compute_ns * 10 : r.compute_ns);
    OneForwardOneBackward({r, comms.tp[at], comms.ep[at], comms.pp[at], stage, stages, &w});
    Gradients(r, comms.dp[at], &w);
    w.Simple(Step::Kind::kSync);
    w.Call(gloo, Collective(Op::kAllReduce, 4, kNoDtype));
    neighbours.AskAndAnswer();
    if ((step + 1) % r.evaluate_every == 0) {
      w.Compute(r.evaluate_ns);
      neighbours.Exchange();
      w.Call(gloo, Collective(Op::kBarrier, 0, kNoDtype));
      w.Call(world, Collective(Op::kAllReduce, 1));
      w.Simple(Step::Kind::kSync);
    }
  }
  if (r.checkpoint) {
    w.Call(gloo, Collective(Op::kBroadcast, 64, kNoDtype, 0));  // the name of the file
    w.Compute(rank == 0 ? 8 * kSecond : kSecond / 10);
    w.Call(world, Collective(Op::kAllReduce, 1));
    w.Simple(Step::Kind::kSync);
  }
  for (const int comm : all) {
    if (comm >= 0) w.Simple(Step::Kind::kDestroy, comm);
  }
  w.Simple(Step::Kind::kExit);
}

}  // namespace

int JobPlan::RankIn(int comm, int rank) const {
  const std::vector<int>& ranks = comms[static_cast<size_t>(comm)].ranks;
  return static_cast<int>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
}

Program* JobPlan::Own(int rank) {
  auto own = std::make_shared<Program>(*programs[static_cast<size_t>(rank)]);
  programs[static_cast<size_t>(rank)] = own;
  return own.get();
}

JobPlan MakeJob(Random& random, int ranks, bool small_steps) {
  const Layout layout = MakeLayout(random, ranks);
  JobPlan plan;
  plan.ranks = layout.ranks();
  plan.layout = absl::StrCat("dp", layout.dp, "-tp", layout.tp, "-pp", layout.pp, "-ep", layout.ep);
  plan.ranks_per_host = Chance(random, 70) ? 8 : 1 << Below(random, 5);
  const Comms comms = MakeComms(layout, Chance(random, 25), &plan);
  Recipe recipe;
  recipe.steps = small_steps ? 2 : 3 + static_cast<int>(Below(random, 8));
  recipe.microbatches = small_steps     ? 1
                        : layout.pp > 1 ? 1 + static_cast<int>(Below(random, 6))
                                        : 1;
  recipe.buckets = 1 + static_cast<int>(Below(random, small_steps ? 2 : 5));
  recipe.layers = small_steps ? 1 : 1 + static_cast<int>(Below(random, 3));
  recipe.fsdp = Chance(random, 40);
  recipe.evaluate_every = small_steps ? 2 : 2 + static_cast<int>(Below(random, 4));
  recipe.checkpoint = Chance(random, 30);
  recipe.compute_ns = 5'000'000 + static_cast<int64_t>(Below(random, 400'000'000));
  for (int rank = 0; rank < plan.ranks; ++rank) {
    auto program = std::make_shared<Program>();
    WriteProgram(recipe, comms, rank, rank / (layout.tp * layout.dp), layout.pp, program.get());
    plan.programs.push_back(std::move(program));
  }
  return plan;
}

JobPlan MakePipeline(Random& random, int stages) {
  JobPlan plan;
  plan.ranks = stages;
  plan.layout = absl::StrCat("pp", stages);
  plan.ranks_per_host = Chance(random, 50) ? 8 : 1;
  plan.comms.push_back({"pp", {}});
  for (int stage = 0; stage < stages; ++stage) plan.comms[0].ranks.push_back(stage);
  Recipe recipe;
  recipe.microbatches = 2 + static_cast<int>(Below(random, 4));
  recipe.compute_ns = 50'000'000;
  const int steps = 2 + static_cast<int>(Below(random, 4));
  for (int stage = 0; stage < stages; ++stage) {
    auto program = std::make_shared<Program>();
    Writer w(program.get());
    w.Simple(Step::Kind::kInit, 0);
    for (int step = 0; step < steps; ++step) {
      OneForwardOneBackward({recipe, -1, -1, 0, stage, stages, &w});
      w.Simple(Step::Kind::kSync);
    }
    w.Simple(Step::Kind::kDestroy, 0);
    w.Simple(Step::Kind::kExit);
    plan.programs.push_back(std::move(program));
  }
  return plan;
}

JobPlan MakeDataParallel(Random& random, int ranks, int steps) {
  JobPlan plan;
  plan.ranks = ranks;
  plan.layout = absl::StrCat("dp", ranks);
  plan.comms.push_back({"default_pg", {}});
  const auto compute_ns = static_cast<int64_t>(20'000'000 + Below(random, 60'000'000));
  const int buckets = 1 + static_cast<int>(Below(random, 4));
  for (int rank = 0; rank < ranks; ++rank) {
    plan.comms[0].ranks.push_back(rank);
    auto program = std::make_shared<Program>();
    Writer w(program.get());
    w.Simple(Step::Kind::kInit, 0);
    for (int step = 0; step < steps; ++step) {
      w.Compute(compute_ns);
      for (int bucket = 0; bucket < buckets; ++bucket) {
        w.Call(0, Collective(Op::kAllReduce, uint64_t{1} << (18 + bucket)));
      }
      w.Simple(Step::Kind::kSync);
    }
    w.Simple(Step::Kind::kDestroy, 0);
    w.Simple(Step::Kind::kExit);
    plan.programs.push_back(std::move(program));
  }
  return plan;
}

}  // namespace rollcall::corpus
