// SPDX-License-Identifier: Apache-2.0
// PastFaults(): ties, sends without receives, and creations, with a past and without one.
#include <algorithm>
#include <utility>

#include "faults.h"
#include "past_jobs.h"

namespace rollcall::corpus {
namespace {

using Kind = Step::Kind;

Program::iterator At(Program* program, size_t index) {
  return program->begin() + static_cast<std::ptrdiff_t>(index);
}

Step Call(int comm, const CallArgs& args) {
  Step step;
  step.kind = Kind::kCall;
  step.comm = comm;
  step.args = args;
  return step;
}

std::set<int> AllRanks(const JobPlan& plan) {
  std::set<int> ranks;
  for (int rank = 0; rank < plan.ranks; ++rank) ranks.insert(rank);
  return ranks;
}

// ---- Ties -------------------------------------------------------------------

// Half of the ranks go wrong in the same way.
void BreakHalf(Random& random, Case* c) {
  const int ranks = c->plan.ranks;
  const int first = static_cast<int>(Below(random, static_cast<uint64_t>(ranks)));
  for (int i = 0; i < ranks / 2; ++i) c->truth.culprits.insert((first + i) % ranks);
}

Habits ChooseHabits(Random& random) {
  Habits habits;
  habits.ranks = Chance(random, 70) ? 2 : Chance(random, 50) ? 4 : 8;
  if (Chance(random, 40)) habits.evaluate_every = 2 + static_cast<int>(Below(random, 5));
  habits.lengths = habits.evaluate_every == 0 && Chance(random, 15);
  return habits;
}

using Change = bool (*)(Random& random, size_t begin, size_t end, Program* program);

// A step of the program between these indices that is a call; `end`: none.
size_t ChooseCall(Random& random, size_t begin, size_t end, const Program& program) {
  std::vector<size_t> calls;
  for (size_t i = begin; i < end; ++i) {
    if (program[i].kind == Kind::kCall) calls.push_back(i);
  }
  return calls.empty() ? end : calls[Below(random, calls.size())];
}

bool Extra(Random& random, size_t begin, size_t end, Program* program) {
  size_t at = ChooseCall(random, begin, end, *program);
  if (at == end) return false;
  at += Below(random, 2);  // before or after it
  const CallArgs extras[] = {{Op::kBroadcast, 7, kNoReduction, 0, 777},
                             {Op::kAllReduce, 7, 0, kNoPeer, 9},
                             {Op::kAllGather, 7, kNoReduction, kNoPeer, 55}};
  program->insert(At(program, at), Call(0, extras[Below(random, 3)]));
  return true;
}

bool Skip(Random& random, size_t begin, size_t end, Program* program) {
  const size_t at = ChooseCall(random, begin, end, *program);
  if (at == end) return false;
  program->erase(At(program, at));
  return true;
}

bool ChangeCall(Random& random, size_t begin, size_t end, Program* program) {
  const size_t at = ChooseCall(random, begin, end, *program);
  if (at == end) return false;
  CallArgs& args = (*program)[at].args;
  switch (Below(random, 3)) {
    case 0:
      args.count += 1 + Below(random, 1000);
      return true;
    case 1:
      args.dtype = args.dtype == 7 ? 2 : 7;
      return true;
    default:
      args = {Op::kBroadcast, 7, kNoReduction, 0, args.count};
      return true;
  }
}

// Adds the change in one step to the broken ranks. `begin`, `end`: of that step.
bool ApplyChange(Random& random, Change change, size_t begin, size_t end, Case* c) {
  BreakHalf(random, c);
  const Random before = random;  // the same change on every broken rank
  for (const int rank : c->truth.culprits) {
    random = before;
    if (!change(random, begin, end, c->plan.Own(rank))) return false;
  }
  return true;
}

// The first step before which every habit of the job has lasted for long enough.
int FirstWithPast(const Habits& habits, int calls) {
  return std::max(42 / calls + 2, habits.evaluate_every * 4 + 2);
}

// A long job, and one of its steps that has a past.
struct LateStep {
  LongJob job;
  size_t step = 0;
};

LateStep ChooseLateStep(Random& random, Case* c) {
  Habits habits = ChooseHabits(random);
  habits.steps = 80;
  LongJob job = MakeSteps(random, habits);
  c->plan = std::move(job.plan);
  const int first = FirstWithPast(job.habits, job.habits.calls);
  const auto step =
      static_cast<size_t>(first) + Below(random, static_cast<uint64_t>(habits.steps - 1 - first));
  c->truth.various_lengths = habits.lengths;
  return {std::move(job), step};
}

bool BreakLate(Random& random, Case* c, Change change) {
  const auto [job, step] = ChooseLateStep(random, c);
  return ApplyChange(random, change, job.steps[step], job.steps[step + 1], c);
}

bool ExtraLate(Random& random, int, Case* c) { return BreakLate(random, c, Extra); }
bool SkipLate(Random& random, int, Case* c) { return BreakLate(random, c, Skip); }
bool ChangeLate(Random& random, int, Case* c) { return BreakLate(random, c, ChangeCall); }

// Half of the ranks leave the loop some steps before the others.
bool LeaveLoop(Random& random, int, Case* c) {
  const auto [job, step] = ChooseLateStep(random, c);
  BreakHalf(random, c);
  for (const int rank : c->truth.culprits) {
    Program* program = c->plan.Own(rank);
    program->erase(At(program, job.steps[step]), At(program, job.steps.back()));
  }
  return true;
}

Change AnyChange(Random& random) {
  const Change changes[] = {Extra, Skip, ChangeCall};
  return changes[Below(random, 3)];
}

bool BreakEarly(Random& random, int, Case* c) {
  Habits habits = ChooseHabits(random);
  habits.steps = 8;
  LongJob job = MakeSteps(random, habits);
  c->plan = std::move(job.plan);
  const size_t step = Below(random, 2);
  return ApplyChange(random, AnyChange(random), job.steps[step], job.steps[step + 1], c);
}

// Every step makes other calls, or evaluations come at any time.
bool BreakIrregular(Random& random, int, Case* c) {
  Habits habits = ChooseHabits(random);
  habits.steps = 60;
  habits.any_time = Chance(random, 50);
  habits.irregular = !habits.any_time;
  LongJob job = MakeSteps(random, habits);
  c->plan = std::move(job.plan);
  const size_t step = 10 + Below(random, 48);
  return ApplyChange(random, AnyChange(random), job.steps[step], job.steps[step + 1], c);
}

// Fills in the contradiction. The culprits stay as they are.
bool JudgeContradiction(Case* c, FoundDivergence* found) {
  Truth& truth = c->truth;
  if (!FindDivergence(*c, *truth.culprits.begin(), found)) return false;
  truth.hangs = true;
  truth.causes = {found->operation ? Cause::kOperationMismatch : Cause::kArgumentMismatch};
  truth.comm = found->comm;
  truth.position = found->position;
  truth.most = Certainty::kLikely;
  return true;
}

bool JudgeDecided(Case* c) {
  FoundDivergence found;
  if (!JudgeContradiction(c, &found)) return false;
  // Lost records are a lost past; agents that start late lose some, too. Where lengths change all
  // the time, another length shows nothing.
  const bool is_blind = c->truth.various_lengths && !found.operation;
  const bool may_lose = c->sight.lost_records_percent != 0 || c->sight.late_hosts_percent != 0;
  if (is_blind || may_lose) c->truth.also = AllRanks(c->plan);
  return true;
}

bool JudgeUndecided(Case* c) {
  FoundDivergence found;
  if (!JudgeContradiction(c, &found)) return false;
  c->truth.culprits = AllRanks(c->plan);
  return true;
}

bool JudgeIrregular(Case* c) {
  const std::set<int> broken = c->truth.culprits;
  if (!JudgeUndecided(c)) return false;
  c->truth.also = broken;  // a step may have shown enough
  return true;
}

// ---- Sends without receives -------------------------------------------------

// The index of the nth step in the rank's program.
size_t FindStep(const Program& program, int nth) {
  size_t i = 0;
  for (; i < program.size(); ++i) {
    if (program[i].kind == Kind::kCompute && nth-- == 0) break;
  }
  return i;
}

// One end too few or too many in one step of one rank.
bool BreakExchange(Random& random, Traffic traffic, int ranks, int step, Case* c) {
  const int rank = static_cast<int>(Below(random, static_cast<uint64_t>(ranks)));
  Program* program = c->plan.Own(rank);
  const size_t begin = FindStep(*program, step), end = FindStep(*program, step + 1);
  std::vector<size_t> exchanges;
  for (size_t i = begin; i < end; ++i) {
    if ((*program)[i].kind == Kind::kP2p) exchanges.push_back(i);
  }
  if (exchanges.empty()) return false;
  const size_t at = exchanges[Below(random, exchanges.size())];
  std::vector<CallArgs>& ops = (*program)[at].p2p;
  const size_t nth = Below(random, ops.size());
  if (traffic != Traffic::kAllToAll && Chance(random, 40)) {
    Step extra = (*program)[at];
    extra.p2p = {ops[nth]};
    program->insert(At(program, at), extra);
  } else {
    ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(nth));
    if (ops.empty()) program->erase(At(program, at));
  }
  c->truth.culprits = {rank};
  return true;
}

int ChooseFew(Random& random) { return 3 + static_cast<int>(Below(random, 6)); }

bool BreakExchangeAt(Random& random, Traffic traffic, bool late, Case* c) {
  const int ranks = ChooseFew(random);
  const int steps = late ? 70 : 8;
  LongJob job = MakeExchanges(random, traffic, ranks, steps);
  c->plan = std::move(job.plan);
  const int first = late ? std::max(25, job.habits.evaluate_every * 4 + 2) : 0;
  const int step = first + static_cast<int>(Below(random, late ? 40 : 2));
  return BreakExchange(random, traffic, ranks, step, c);
}

Traffic Pairs(Random& random) { return Chance(random, 50) ? Traffic::kRing : Traffic::kChain; }

bool UnmatchLate(Random& random, int, Case* c) {
  return BreakExchangeAt(random, Pairs(random), true, c);
}
bool UnmatchAllToAll(Random& random, int, Case* c) {
  return BreakExchangeAt(random, Traffic::kAllToAll, true, c);
}
bool UnmatchEarly(Random& random, int, Case* c) {
  return BreakExchangeAt(random, Pairs(random), false, c);
}

bool Hangs(const Case& c) { return !c.timeline.all_ended; }

// Without a past the evidence shows the waits alone: a cycle, or without markers perhaps no more
// than that all ranks wait.
void AcceptWaits(Case* c) {
  c->truth.causes.insert(Cause::kDeadlock);
  c->truth.culprits_among = true;
  c->truth.most = Certainty::kCertain;
  if (c->sight.markers) return;
  c->truth.causes.insert(Cause::kStalledInFlight);
  c->truth.culprits.clear();
  c->truth.most = Certainty::kLikely;
}

bool JudgeUnmatched(Case* c) {
  c->truth.hangs = true;
  c->truth.causes = {Cause::kUnmatchedP2p};
  c->truth.most = Certainty::kLikely;
  // Lost records are a lost past. Where reports are late, the clocks of two ticks differ, and with
  // them the order of calls on two communicators.
  const bool is_disordered = c->sight.most_delay_ns != 0 && c->plan.comms.size() > 1;
  if (is_disordered || c->sight.lost_records_percent != 0) AcceptWaits(c);
  return Hangs(*c);
}

bool JudgeUnmatchedEarly(Case* c) {
  c->truth.hangs = true;
  c->truth.causes = {Cause::kUnmatchedP2p};
  AcceptWaits(c);
  return Hangs(*c);
}

// ---- Creations --------------------------------------------------------------

// Some ranks create a communicator in the middle of the job, and the others do not.
bool ForkCreation(Random& random, int ranks, int creators, Case* c) {
  Habits habits;
  habits.ranks = ranks;
  habits.steps = 20;
  LongJob job = MakeSteps(random, habits);
  c->plan = std::move(job.plan);
  c->plan.comms.push_back({"evaluation", c->plan.comms[0].ranks});
  Step init;
  init.kind = Kind::kInit;
  init.comm = 1;
  const size_t at = job.steps[1 + Below(random, 18)];
  const int first = static_cast<int>(Below(random, static_cast<uint64_t>(ranks)));
  std::set<int> inside;
  for (int i = 0; i < creators; ++i) {
    const int rank = (first + i) % ranks;
    Program* program = c->plan.Own(rank);
    program->insert(At(program, at), init);
    inside.insert(rank);
  }
  for (int rank = 0; rank < ranks; ++rank) {
    if ((inside.count(rank) != 0) == (creators * 2 < ranks)) c->truth.culprits.insert(rank);
  }
  return true;
}

bool ForgetCreation(Random& random, int, Case* c) {
  const int ranks = ChooseFew(random);
  const int forget = 1 + static_cast<int>(Below(random, static_cast<uint64_t>(ranks - 1) / 2));
  return ForkCreation(random, ranks, ranks - forget, c);
}

bool CreateAlone(Random& random, int, Case* c) {
  const int ranks = ChooseFew(random);
  return ForkCreation(random, ranks,
                      1 + static_cast<int>(Below(random, static_cast<uint64_t>(ranks - 1) / 2)), c);
}

bool CreateHalf(Random& random, int, Case* c) {
  const int ranks = 2 * (1 + static_cast<int>(Below(random, 4)));
  return ForkCreation(random, ranks, ranks / 2, c);
}

bool JudgeForgotten(Case* c) {
  c->truth.hangs = true;
  c->truth.causes = {Cause::kInitIncomplete};
  c->truth.most = Certainty::kLikely;
  return Hangs(*c);
}

bool JudgeAlone(Case* c) {
  c->truth.hangs = true;
  c->truth.causes = {Cause::kMissingRank};
  c->truth.most = Certainty::kLikely;
  return Hangs(*c);
}

bool JudgeHalf(Case* c) {
  c->truth.hangs = true;
  c->truth.causes = {Cause::kDeadlock};
  c->truth.culprits = AllRanks(c->plan);
  return Hangs(*c);
}

}  // namespace

std::vector<Fault> PastFaults() {
  return {
      {"tie_extra", 0, ExtraLate, JudgeDecided, DivergenceKind::kExtra},
      {"tie_skipped", 0, SkipLate, JudgeDecided, DivergenceKind::kSkipped},
      {"tie_changed", 0, ChangeLate, JudgeDecided, DivergenceKind::kReplaced},
      {"tie_left_loop", 0, LeaveLoop, JudgeDecided, DivergenceKind::kSkipped},
      {"tie_without_past", 0, BreakEarly, JudgeUndecided},
      {"tie_irregular", 0, BreakIrregular, JudgeIrregular},
      {"p2p_unmatched", 0, UnmatchLate, JudgeUnmatched},
      {"all_to_all_unmatched", 0, UnmatchAllToAll, JudgeUnmatched},
      {"p2p_without_past", 0, UnmatchEarly, JudgeUnmatchedEarly},
      {"creation_forgotten", 0, ForgetCreation, JudgeForgotten},
      {"creation_alone", 0, CreateAlone, JudgeAlone},
      {"creation_half", 0, CreateHalf, JudgeHalf},
  };
}

}  // namespace rollcall::corpus
