// SPDX-License-Identifier: Apache-2.0
#include "faults.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "daemon/rules/divergence.h"

namespace rollcall::corpus {
namespace {

using Kind = Step::Kind;

// ---- Choosing a step --------------------------------------------------------

std::vector<size_t> FindSteps(const Program& program,
                              const std::function<bool(const Step&)>& fits) {
  std::vector<size_t> steps;
  for (size_t i = 0; i < program.size(); ++i) {
    if (fits(program[i])) steps.push_back(i);
  }
  return steps;
}

bool IsCall(const Step& step) { return step.kind == Kind::kCall; }
bool IsTraffic(const Step& step) { return step.kind == Kind::kCall || step.kind == Kind::kP2p; }
bool IsInit(const Step& step) { return step.kind == Kind::kInit; }
bool IsDestroy(const Step& step) { return step.kind == Kind::kDestroy; }

// A step of a rank's program.
struct StepRef {
  int rank = -1;
  size_t step = 0;
};

// Chooses a random rank and a random step of this rank that fits.
bool Choose(Random& random, const JobPlan& plan, const std::function<bool(const Step&)>& fits,
            StepRef* target) {
  target->rank = static_cast<int>(Below(random, static_cast<uint64_t>(plan.ranks)));
  const std::vector<size_t> steps =
      FindSteps(*plan.programs[static_cast<size_t>(target->rank)], fits);
  if (steps.empty()) return false;
  target->step = steps[Below(random, steps.size())];
  return true;
}

Step Simple(Kind kind, int64_t ns = 0) {
  Step step;
  step.kind = kind;
  step.ns = ns;
  return step;
}

void Insert(JobPlan* plan, const StepRef& target, const Step& step) {
  Program* program = plan->Own(target.rank);
  program->insert(program->begin() + static_cast<std::ptrdiff_t>(target.step), step);
}

Step* Own(JobPlan* plan, const StepRef& target) { return &(*plan->Own(target.rank))[target.step]; }

size_t CommSize(const JobPlan& plan, const Step& step) {
  return step.comm < 0 ? 0 : plan.comms[static_cast<size_t>(step.comm)].ranks.size();
}

// The rank with the fault: inject() marks it for judge().
int Broken(const Case& c) { return c.truth.culprits.empty() ? -1 : *c.truth.culprits.begin(); }

bool MakePlan(Random& random, int ranks, Case* c) {
  const bool pipeline = ranks <= 64 && Chance(random, 12);
  c->plan = pipeline ? MakePipeline(random, std::max(2, ranks))
                     : MakeJob(random, std::max(2, ranks), ranks > 256);
  return true;
}

// Inserts `step` before a random step that fits.
bool InsertBefore(Random& random, int ranks, Case* c, const std::function<bool(const Step&)>& fits,
                  const Step& step) {
  MakePlan(random, ranks, c);
  StepRef target;
  if (!Choose(random, c->plan, fits, &target)) return false;
  Insert(&c->plan, target, step);
  c->truth.culprits = {target.rank};
  return true;
}

// ---- Absent ranks -----------------------------------------------------------

bool FreezeBeforeCall(Random& random, int ranks, Case* c) {
  return InsertBefore(random, ranks, c, IsTraffic, Simple(Kind::kCompute, kNever));
}
bool ExitEarly(Random& random, int ranks, Case* c) {
  return InsertBefore(random, ranks, c, IsTraffic, Simple(Kind::kExit));
}
bool DieEarly(Random& random, int ranks, Case* c) {
  const auto target = Chance(random, 15) ? IsInit : IsTraffic;
  return InsertBefore(random, ranks, c, target, Simple(Kind::kDie));
}
// The agent cannot find out how the process ended.
bool EndUnseen(Random& random, int ranks, Case* c) {
  c->sight.sees_exit_status = false;
  return DieEarly(random, ranks, c);
}
bool FreezeBeforeInit(Random& random, int ranks, Case* c) {
  return InsertBefore(random, ranks, c, IsInit, Simple(Kind::kCompute, kNever));
}
bool FreezeBeforeDestroy(Random& random, int ranks, Case* c) {
  return InsertBefore(random, ranks, c, IsDestroy, Simple(Kind::kCompute, kNever));
}

// Two or more ranks of one communicator stop before the same call.
bool FreezeSeveral(Random& random, int ranks, Case* c) {
  MakePlan(random, ranks, c);
  StepRef target;
  const auto in_large = [&](const Step& s) { return IsCall(s) && CommSize(c->plan, s) >= 4; };
  if (!Choose(random, c->plan, in_large, &target)) return false;
  const Program& program = *c->plan.programs[static_cast<size_t>(target.rank)];
  const int comm = program[target.step].comm;
  const auto nth = static_cast<size_t>(
      std::count_if(program.begin(), program.begin() + static_cast<std::ptrdiff_t>(target.step),
                    [&](const Step& s) { return IsCall(s) && s.comm == comm; }));
  const std::vector<int>& members = c->plan.comms[static_cast<size_t>(comm)].ranks;
  const size_t count = 2 + Below(random, members.size() / 2 - 1);
  for (size_t i = 0; i < count; ++i) {
    const int rank = members[Below(random, members.size())];
    if (!c->truth.culprits.insert(rank).second) continue;
    const auto steps = FindSteps(*c->plan.programs[static_cast<size_t>(rank)],
                                 [&](const Step& s) { return IsCall(s) && s.comm == comm; });
    Insert(&c->plan, {rank, steps[nth]}, Simple(Kind::kCompute, kNever));
  }
  return true;
}

bool LoseHost(Random& random, int ranks, Case* c) {
  MakePlan(random, ranks, c);
  const int hosts = c->plan.HostIndex(c->plan.ranks - 1) + 1;
  if (hosts < 2) return false;
  const int host = static_cast<int>(Below(random, static_cast<uint64_t>(hosts)));
  const Timeline healthy = Run(c->plan);
  StepRef target;
  if (!Choose(random, c->plan, IsTraffic, &target)) return false;
  // The host stops in the middle of the job.
  const int64_t when =
      healthy.last_event / 8 +
      static_cast<int64_t>(Below(random, static_cast<uint64_t>(healthy.last_event / 2)));
  for (int rank = 0; rank < c->plan.ranks; ++rank) {
    if (c->plan.HostIndex(rank) != host) continue;
    c->truth.culprits.insert(rank);
    // Stops the rank before the first call that it would have entered after that time.
    const RankTimeline& line = healthy.ranks[static_cast<size_t>(rank)];
    std::map<int, size_t> entered;
    for (const Track& track : line.tracks) {
      for (const CallTimes& call : track.calls) entered[track.comm] += call.entered < when;
    }
    const Program& program = *c->plan.programs[static_cast<size_t>(rank)];
    size_t at = 0;
    for (; at < program.size(); ++at) {
      if (IsDestroy(program[at])) break;
      if (!IsTraffic(program[at])) continue;
      size_t& left = entered[program[at].comm];
      const size_t calls = IsCall(program[at]) ? 1 : program[at].p2p.size();
      if (left < calls) break;
      left -= calls;
    }
    Insert(&c->plan, {rank, at}, Simple(Kind::kDie));
  }
  c->plan.hosts_lost = {host};
  return true;
}

// The right answer if others wait for the ranks with the fault.
bool JudgeAbsence(Case* c, Cause cause) {
  Owed owed;
  std::set<int> culprits;
  for (const int rank : c->truth.culprits) {
    const Owed one = OwedBy(*c, rank);
    if (one.any()) culprits.insert(rank);
    owed.creation |= one.creation;
    owed.collective |= one.collective;
    owed.p2p |= one.p2p;
    owed.teardown |= one.teardown;
  }
  if (!owed.any()) return false;
  c->truth.hangs = true;
  if (cause == Cause::kHostLost) culprits = c->truth.culprits;  // all of the host
  c->truth.culprits = culprits;
  if (cause != Cause::kMissingRank) {
    c->truth.causes = {cause};
    return true;
  }
  if (owed.creation) c->truth.causes.insert(Cause::kInitIncomplete);
  if (owed.collective) c->truth.causes.insert(Cause::kMissingRank);
  if (owed.p2p) c->truth.causes.insert(Cause::kUnmatchedP2p);
  if (owed.teardown) c->truth.causes.insert(Cause::kTeardownHang);
  return true;
}

bool JudgeMissing(Case* c) {
  c->truth.several = c->truth.culprits.size() > 1;
  return JudgeAbsence(c, Cause::kMissingRank);
}
bool JudgeExited(Case* c) { return JudgeAbsence(c, Cause::kRankExited); }
bool JudgeDied(Case* c) { return JudgeAbsence(c, Cause::kRankDied); }
// An unknown exit status does not show whether the rank died.
bool JudgeEnded(Case* c) {
  c->truth.most = Certainty::kLikely;
  return JudgeDied(c);
}
bool JudgeLost(Case* c) {
  c->truth.most = Certainty::kLikely;
  // No evidence shows the loss of a host that has never reported.
  const int64_t reported = (c->sight.late_hosts_percent != 0 ? 3 * kSecond : 0) + c->sight.tick_ns;
  for (const int rank : c->truth.culprits) {
    if (c->timeline.ranks[static_cast<size_t>(rank)].ended < reported) return false;
  }
  return JudgeAbsence(c, Cause::kHostLost);
}

bool JudgeTeardown(Case* c) {
  if (!JudgeAbsence(c, Cause::kMissingRank)) return false;
  return c->truth.causes == std::set<Cause>{Cause::kTeardownHang};
}

// ---- Calls that differ ------------------------------------------------------

bool ChooseCall(Random& random, int ranks, Case* c, StepRef* target) {
  MakePlan(random, ranks, c);
  if (!Choose(random, c->plan, IsCall, target)) return false;
  c->truth.culprits = {target->rank};
  return true;
}

bool ReplaceCall(Random& random, int ranks, Case* c) {
  StepRef target;
  if (!ChooseCall(random, ranks, c, &target)) return false;
  CallArgs& args = Own(&c->plan, target)->args;
  const Op before = args.op;
  const Op others[] = {Op::kAllReduce, Op::kAllGather, Op::kReduceScatter, Op::kBroadcast};
  args.op = others[Below(random, 4)];
  if (args.op == before) return false;
  const bool reduces = args.op == Op::kAllReduce || args.op == Op::kReduceScatter;
  args.reduction = reduces ? uint8_t{0} : kNoReduction;
  args.peer = args.op == Op::kBroadcast ? 0 : kNoPeer;
  return true;
}

bool ExtraCall(Random& random, int ranks, Case* c) {
  StepRef target;
  if (!ChooseCall(random, ranks, c, &target)) return false;
  Step extra = (*c->plan.programs[static_cast<size_t>(target.rank)])[target.step];
  extra.args = {Op::kBroadcast, 7, kNoReduction, 0, 1234567};
  Insert(&c->plan, target, extra);
  return true;
}

bool SkipCall(Random& random, int ranks, Case* c) {
  StepRef target;
  if (!ChooseCall(random, ranks, c, &target)) return false;
  Program* program = c->plan.Own(target.rank);
  program->erase(program->begin() + static_cast<std::ptrdiff_t>(target.step));
  return true;
}

bool ChangeArgument(Random& random, int ranks, Case* c) {
  StepRef target;
  if (!ChooseCall(random, ranks, c, &target)) return false;
  CallArgs& args = Own(&c->plan, target)->args;
  switch (Below(random, 4)) {
    case 0:
      args.count += 1 + Below(random, 1000);
      return true;
    case 1:
      if (args.dtype == kNoDtype) return false;
      args.dtype = args.dtype == 7 ? 2 : args.dtype == 9 ? 6 : 5;  // of the same size
      return true;
    case 2:
      if (args.reduction == kNoReduction) return false;
      args.reduction = 2;
      return true;
    default:
      if (args.peer == kNoPeer) return false;
      args.peer = 1;
      return true;
  }
}

// Swaps two neighbouring calls, on one communicator or on two.
bool SwapCalls(Random& random, int ranks, Case* c) {
  StepRef target;
  if (!ChooseCall(random, ranks, c, &target)) return false;
  Program* program = c->plan.Own(target.rank);
  for (size_t other = target.step + 1; other < program->size(); ++other) {
    if (!IsCall((*program)[other])) continue;
    std::swap((*program)[target.step], (*program)[other]);
    return true;
  }
  return false;
}

// Like SwapCalls() on one communicator, because two threads make the calls at the same time.
bool CallFromTwoThreads(Random& random, int ranks, Case* c) {
  StepRef target;
  if (!ChooseCall(random, ranks, c, &target)) return false;
  Program* program = c->plan.Own(target.rank);
  if (target.step + 1 >= program->size()) return false;
  Step& first = (*program)[target.step];
  Step& second = (*program)[target.step + 1];
  if (!IsCall(second) || second.comm != first.comm || SameCall(first.args, second.args)) {
    return false;
  }
  if (c->plan.IsGloo(first.comm)) return false;  // a call of gloo holds its own thread only
  std::swap(first, second);
  first.thread = 2;
  return true;
}

// The collectives that a rank has entered.
std::vector<CallArgs> EnteredCollectives(const Track& track) {
  std::vector<CallArgs> calls;
  for (const CallTimes& call : track.calls) {
    if (OpKind(call.args.op) == CallKind::kCollective && call.entered != kNever) {
      calls.push_back(call.args);
    }
  }
  return calls;
}

}  // namespace

bool FindDivergence(const Case& c, int broken, FoundDivergence* found) {
  for (const Track& track : c.timeline.ranks[static_cast<size_t>(broken)].tracks) {
    const std::vector<CallArgs> mine = EnteredCollectives(track);
    for (const int other : c.plan.comms[static_cast<size_t>(track.comm)].ranks) {
      const Track* theirs = c.timeline.ranks[static_cast<size_t>(other)].OnComm(track.comm);
      if (other == broken || theirs == nullptr) continue;
      const std::vector<CallArgs> calls = EnteredCollectives(*theirs);
      for (size_t i = 0; i < std::min(mine.size(), calls.size()); ++i) {
        if (SameCall(mine[i], calls[i])) continue;
        if (found->comm < 0 || i < found->position) {
          *found = {track.comm, i, Canonical(mine[i].op) != Canonical(calls[i].op),
                    c.plan.comms[static_cast<size_t>(track.comm)].ranks.size()};
        }
        break;
      }
    }
    if (found->comm >= 0) return true;
  }
  return false;
}

namespace {

bool Waits(const Case& c, int rank) {
  for (const Track& track : c.timeline.ranks[static_cast<size_t>(rank)].tracks) {
    for (const CallTimes& call : track.calls) {
      if (call.started != kNever && call.finished == kNever) return true;
    }
  }
  return false;
}

// The members that have called by the time of the verdict. A late one may join either side then.
std::set<int> CalledInTime(const Case& c, const FoundDivergence& found) {
  constexpr int64_t kVerdictAfter = 6 * kSecond;  // the second of the two sides
  std::vector<std::pair<int64_t, int>> called;
  for (const int rank : c.plan.comms[static_cast<size_t>(found.comm)].ranks) {
    const Track* track = c.timeline.ranks[static_cast<size_t>(rank)].OnComm(found.comm);
    if (track == nullptr) continue;
    uint64_t position = 0;
    for (const CallTimes& call : track->calls) {
      if (OpKind(call.args.op) != CallKind::kCollective || call.entered == kNever) continue;
      if (position++ == found.position) called.emplace_back(call.entered, rank);
    }
  }
  std::sort(called.begin(), called.end());
  std::set<int> ranks;
  for (const auto& [entered, rank] : called) {
    if (called.size() > 1 && entered <= called[1].first + kVerdictAfter) ranks.insert(rank);
  }
  return ranks;
}

bool JudgeDifference(Case* c) {
  const int broken = Broken(*c);
  FoundDivergence found;
  Truth& truth = c->truth;
  if (FindDivergence(*c, broken, &found)) {
    truth.hangs = true;
    truth.causes = {found.operation ? Cause::kOperationMismatch : Cause::kArgumentMismatch};
    truth.comm = found.comm;
    truth.position = found.position;
    if (found.members == 2) {  // one against one
      const std::vector<int>& both = c->plan.comms[static_cast<size_t>(found.comm)].ranks;
      truth.culprits = {both.begin(), both.end()};
      truth.also = {broken};  // its own past may show that it is wrong
      truth.most = Certainty::kLikely;
    } else if (const std::set<int> called = CalledInTime(*c, found);
               called.size() == 2 && called.count(broken) != 0) {
      truth.also = called;
    }
    return true;
  }
  if (c->timeline.all_ended) {
    // Nothing hangs, and only the order across communicators differs: the job is healthy.
    truth = Truth();
    return true;
  }
  truth.hangs = true;
  if (Waits(*c, broken)) {
    // Where a message meets the call, one of its two ranks has left out a call.
    // That rank has left out a collective.
    truth.causes = {Cause::kDeadlock, Cause::kUnmatchedP2p, Cause::kMissingRank};
    truth.culprits_among = true;
    if (!c->sight.markers) {
      // The evidence does not always show that the culprit waits, too.
      truth.causes.insert(Cause::kStalledInFlight);
      truth.unseen = true;
      truth.most = Certainty::kLikely;
    }
    return true;
  }
  // The rank skipped the last call of all and continues to its end.
  truth.causes = {Cause::kRankExited, Cause::kMissingRank};
  return OwedBy(*c, broken).collective;
}

bool JudgeConcurrency(Case* c) {
  const int broken = Broken(*c);
  if (!JudgeDifference(c) || c->truth.comm < 0) return false;
  c->truth.causes = {Cause::kConcurrentUse};
  c->truth.culprits = {broken};
  c->truth.also.clear();
  c->truth.most = Certainty::kCertain;
  return true;
}

// The right answer is a hang with this cause. False if the fault had no effect.
bool Hangs(Case* c, Cause cause) {
  c->truth.hangs = true;
  c->truth.causes = {cause};
  return !c->timeline.all_ended;
}

// Without markers and with lost records the order is unknown: a guess is right, too.
void AcceptGuess(Case* c) {
  if (c->sight.markers || c->sight.lost_records_percent == 0) return;
  c->truth.causes.insert(Cause::kStalledInFlight);
  c->truth.unseen = true;
}

// ---- Sends and receives -----------------------------------------------------

bool ReceiveLess(Random& random, int ranks, Case* c) {
  MakePlan(random, ranks, c);
  StepRef target;
  // gloo ends a job with such a message.
  const auto fits = [c](const Step& s) { return s.kind == Kind::kP2p && !c->plan.IsGloo(s.comm); };
  if (!Choose(random, c->plan, fits, &target)) return false;
  Step* step = Own(&c->plan, target);
  CallArgs& args = step->p2p[Below(random, step->p2p.size())];
  args.count = args.count / 2 + 1;
  const std::vector<int>& members = c->plan.comms[static_cast<size_t>(step->comm)].ranks;
  c->truth.culprits = {target.rank, members[static_cast<size_t>(args.peer)]};
  return true;
}

bool JudgeSize(Case* c) {
  const bool hangs = Hangs(c, Cause::kUnmatchedP2p);
  c->truth.most = Certainty::kLikely;
  AcceptGuess(c);
  return hangs;
}

// Every rank of a ring sends to the next rank before it receives, without a group.
bool SendFirstInARing(Random& random, int ranks, Case* c) {
  c->plan = JobPlan();
  JobPlan& plan = c->plan;
  plan.ranks = std::clamp(ranks, 2, 64);
  plan.layout = "ring";
  plan.ranks_per_host = Chance(random, 50) ? 8 : 1;
  plan.comms.push_back({"ring", {}});
  const size_t rounds = 1 + Below(random, 5);
  const size_t bad = Below(random, rounds);
  for (int rank = 0; rank < plan.ranks; ++rank) {
    plan.comms[0].ranks.push_back(rank);
    c->truth.culprits.insert(rank);
    const CallArgs send = {Op::kSend, 7, kNoReduction, (rank + 1) % plan.ranks, 4096};
    const CallArgs receive = {Op::kRecv, 7, kNoReduction, (rank + plan.ranks - 1) % plan.ranks,
                              4096};
    auto program = std::make_shared<Program>();
    program->push_back(Simple(Kind::kInit));
    for (size_t round = 0; round < rounds; ++round) {
      Step exchange = Simple(Kind::kP2p);
      program->push_back(Simple(Kind::kCompute, 20'000'000));
      exchange.comm = 0;
      exchange.p2p = {send, receive};
      if (round == bad) {
        exchange.p2p = {send};
        program->push_back(exchange);
        exchange.p2p = {receive};
      }
      program->push_back(exchange);
      program->push_back(Simple(Kind::kSync));
    }
    for (Step& step : *program) {
      if (step.kind == Kind::kInit) step.comm = 0;
    }
    program->push_back(Simple(Kind::kExit));
    plan.programs.push_back(std::move(program));
  }
  return true;
}

bool JudgeCycle(Case* c) {
  const bool hangs = Hangs(c, Cause::kDeadlock);
  c->truth.some_lost = c->sight.lost_records_percent != 0;
  AcceptGuess(c);
  return hangs;
}

// Two neighbours of a gloo group send each other messages, one after the other. One of them leaves
// one out, or makes the two in the other order.
bool MistakeMessages(Random& random, int ranks, Case* c) {
  MakePlan(random, ranks, c);
  StepRef target;
  const auto is_one = [c](const Step& s) { return c->plan.IsGloo(s.comm) && s.p2p.size() == 1; };
  if (!Choose(random, c->plan, is_one, &target)) return false;
  Program* program = c->plan.Own(target.rank);
  const auto step = program->begin() + static_cast<std::ptrdiff_t>(target.step);
  if (Chance(random, 50)) {
    program->erase(step);
  } else if (is_one(*(step + 1))) {
    std::iter_swap(step, step + 1);
  } else {
    return false;
  }
  c->truth.culprits = {target.rank, target.rank ^ 1};
  return true;
}

// Which of the two is wrong only its own past tells. The one that leaves out its last call goes on
// to its end.
bool JudgeMessages(Case* c) {
  const bool hangs = Hangs(c, Cause::kUnmatchedP2p);
  c->truth.causes.insert({Cause::kDeadlock, Cause::kMissingRank, Cause::kRankExited});
  c->truth.some_lost = true;
  return hangs;
}

// ---- GPUs and networks ------------------------------------------------------

bool EndlessKernel(Random& random, int ranks, Case* c) {
  return InsertBefore(random, ranks, c, IsCall, Simple(Kind::kGpuWork, kNever));
}

bool JudgeBlocked(Case* c) {
  const bool hangs = Hangs(c, Cause::kBlockedBeforeStart);
  // Its host waits for its GPU, and so does not come to the next calls.
  const Owed owed = OwedBy(*c, Broken(*c));
  if (owed.collective) c->truth.causes.insert(Cause::kMissingRank);
  if (owed.p2p) c->truth.causes.insert(Cause::kUnmatchedP2p);
  if (c->sight.markers) return hangs;
  // Without markers no evidence distinguishes a GPU that has not started the call from one that
  // cannot finish it.
  c->truth.causes.insert(Cause::kStalledInFlight);
  c->truth.culprits.clear();
  c->truth.culprits_among = true;
  c->truth.most = Certainty::kLikely;
  return hangs;
}

bool StallInFlight(Random& random, int ranks, Case* c) {
  StepRef target;
  if (!ChooseCall(random, ranks, c, &target)) return false;
  Own(&c->plan, target)->stalls = true;
  c->truth.culprits.clear();
  return true;
}

bool JudgeStall(Case* c) { return Hangs(c, Cause::kStalledInFlight); }

bool ReportError(Random& random, int ranks, Case* c) {
  StepRef target;
  if (!ChooseCall(random, ranks, c, &target)) return false;
  Step* step = Own(&c->plan, target);
  step->stalls = true;
  step->error = 1 + static_cast<int32_t>(Below(random, 3));
  return true;
}

bool JudgeError(Case* c) { return Hangs(c, Cause::kNcclError); }

// ---- Slow, and several at once ----------------------------------------------

// One rank computes longer in every step.
bool SlowRank(Random& random, int ranks, Case* c) {
  c->plan = MakeDataParallel(random, std::clamp(ranks, 3, 256), 400);
  const int rank = static_cast<int>(Below(random, static_cast<uint64_t>(c->plan.ranks)));
  for (Step& step : *c->plan.Own(rank)) {
    if (step.kind == Kind::kCompute) step.ns += step.ns / 2 + 20'000'000;
  }
  c->truth.straggler = rank;
  return true;
}

bool JudgeSlow(Case* c) {
  // With delays the clocks are too inexact to show which rank was last.
  c->sight.most_delay_ns = 0;
  c->sight.lost_records_percent = 0;
  return c->timeline.all_ended;
}

// NCCL does not detect that a reduction differs, and later a rank dies.
bool WrongThenDead(Random& random, int ranks, Case* c) {
  StepRef target;
  if (!ChooseCall(random, ranks, c, &target)) return false;
  CallArgs& args = Own(&c->plan, target)->args;
  if (args.reduction == kNoReduction) return false;
  args.reduction = 2;
  StepRef death;
  if (!Choose(random, c->plan, IsTraffic, &death)) return false;
  if (death.rank == target.rank) return false;
  Insert(&c->plan, death, Simple(Kind::kDie));
  return true;
}

// True if a rank has died before it entered the call: the others wait for it, too.
bool AnyDiedBefore(const Case& c, const FoundDivergence& call) {
  return std::any_of(c.timeline.ranks.begin(), c.timeline.ranks.end(), [&](const auto& rank) {
    const Track* track = rank.OnComm(call.comm);
    return rank.died && track != nullptr && EnteredCollectives(*track).size() <= call.position;
  });
}

bool JudgeWrongThenDead(Case* c) {
  FoundDivergence found;
  if (FindDivergence(*c, Broken(*c), &found)) {
    // Either may be the first verdict where a late agent reports both at once, or where the wrong
    // call comes after a wait for the dead.
    const bool one_comes_first = c->sight.late_hosts_percent == 0 && !AnyDiedBefore(*c, found);
    return one_comes_first && JudgeDifference(c);
  }
  for (int rank = 0; rank < c->plan.ranks; ++rank) {
    if (c->timeline.ranks[static_cast<size_t>(rank)].died) c->truth.culprits = {rank};
  }
  return JudgeDied(c);
}

const std::vector<Fault>* MakeFaults() {
  auto* faults = new std::vector<Fault>{
      {"missing_rank", 14, FreezeBeforeCall, JudgeMissing},
      {"missing_ranks", 5, FreezeSeveral, JudgeMissing},
      {"rank_exited", 8, ExitEarly, JudgeExited},
      {"rank_died", 5, DieEarly, JudgeDied},
      {"rank_ended", 3, EndUnseen, JudgeEnded},
      {"host_lost", 6, LoseHost, JudgeLost},
      {"init_incomplete", 6, FreezeBeforeInit, JudgeMissing},
      {"teardown_hang", 4, FreezeBeforeDestroy, JudgeTeardown},
      {"call_replaced", 7, ReplaceCall, JudgeDifference, DivergenceKind::kReplaced},
      {"call_extra", 7, ExtraCall, JudgeDifference, DivergenceKind::kExtra},
      {"call_skipped", 7, SkipCall, JudgeDifference, DivergenceKind::kSkipped},
      {"calls_swapped", 6, SwapCalls, JudgeDifference, DivergenceKind::kSwapped},
      {"argument_changed", 8, ChangeArgument, JudgeDifference, DivergenceKind::kReplaced},
      {"concurrent_use", 4, CallFromTwoThreads, JudgeConcurrency},
      {"p2p_size", 4, ReceiveLess, JudgeSize},
      {"p2p_ring", 3, SendFirstInARing, JudgeCycle},
      {"p2p_gloo", 3, MistakeMessages, JudgeMessages},
      {"blocked_before_start", 6, EndlessKernel, JudgeBlocked},
      {"stalled_in_flight", 5, StallInFlight, JudgeStall},
      {"nccl_error", 5, ReportError, JudgeError},
      {"straggler", 2, SlowRank, JudgeSlow},
      {"wrong_then_dead", 3, WrongThenDead, JudgeWrongThenDead},
  };
  for (const Fault& fault : PastFaults()) faults->push_back(fault);
  for (const Fault& fault : PipelineFaults()) faults->push_back(fault);
  for (const Fault& fault : ThreadFaults()) faults->push_back(fault);
  return faults;
}

}  // namespace

const std::vector<Fault>& Faults() {
  static const std::vector<Fault>* const kFaults = MakeFaults();
  return *kFaults;
}

}  // namespace rollcall::corpus
