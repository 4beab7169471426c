// SPDX-License-Identifier: Apache-2.0
#include "cases.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_format.h"
#include "faults.h"

namespace rollcall::corpus {
namespace {

constexpr int kTries = 200;

// Most jobs are small; some fill several racks.
int ChooseRankCount(Random& random, int most) {
  const int sizes[] = {2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
  const int dice = static_cast<int>(Below(random, 10'000));
  size_t at = dice < 9'600   ? Below(random, 6)
              : dice < 9'990 ? 6 + Below(random, 4)
                             : 10 + Below(random, 4);
  while (at > 0 && sizes[at] > most) --at;
  const int odd = static_cast<int>(Below(random, 4)) == 0 ? static_cast<int>(Below(random, 3)) : 0;
  return std::min(most, sizes[at] + odd);
}

Sight MakeSight(Random& random) {
  Sight sight;
  sight.seed = random();
  sight.markers = Chance(random, 75);
  if (Chance(random, 50)) sight.most_skew_ns = 1 + static_cast<int64_t>(Below(random, 2 * kSecond));
  if (Chance(random, 40)) {
    sight.most_delay_ns = 1 + static_cast<int64_t>(Below(random, 300'000'000));
  }
  if (Chance(random, 10)) sight.lost_records_percent = 20;
  if (Chance(random, 15)) sight.late_hosts_percent = 25;
  if (Chance(random, 30)) sight.resent_percent = 20;
  if (Chance(random, 20)) sight.reconnects_percent = 5;
  sight.tick_ns = Chance(random, 50)
                      ? 1'000'000'000
                      : 100'000'000 + static_cast<int64_t>(Below(random, 900'000'000));
  return sight;
}

const Fault& FaultNamed(Random& random, const std::string& name) {
  int all = 0;
  for (const Fault& fault : Faults()) {
    if (fault.name == name) return fault;
    all += fault.weight;
  }
  int at = static_cast<int>(Below(random, static_cast<uint64_t>(all)));
  for (const Fault& fault : Faults()) {
    at -= fault.weight;
    if (at < 0) return fault;
  }
  return Faults().front();
}

// Adds pauses, which may add up. Their sum stays below the limit of a hang: no evidence
// distinguishes a longer pause from a hang.
void Slow(Random& random, JobPlan* plan) {
  const int slow = static_cast<int>(Below(random, 4));
  uint64_t left = 18;  // seconds; a checkpoint and an evaluation together take ten
  for (int i = 0; i < slow; ++i) {
    const int rank = static_cast<int>(Below(random, static_cast<uint64_t>(plan->ranks)));
    Program* program = plan->Own(rank);
    // A long pause on one rank while the others wait: data, a checkpoint, a compiler.
    const size_t at = Below(random, program->size());
    Step pause;
    const uint64_t seconds = Below(random, left);
    left -= seconds;
    pause.ns = static_cast<int64_t>(seconds) * kSecond;
    program->insert(program->begin() + static_cast<std::ptrdiff_t>(at), pause);
  }
}

const std::vector<int>* RanksOf(const Case& c, uint64_t communicator) {
  for (size_t comm = 0; comm < c.plan.comms.size(); ++comm) {
    if (CommId(static_cast<int>(comm)) == communicator) return &c.plan.comms[comm].ranks;
  }
  return nullptr;
}

// A process with several ranks distinguishes them by their devices, since each communicator counts
// anew.
int GlobalRank(const Case& c, const Verdict& v, const Culprit& culprit) {
  const int held = c.sight.ranks_per_process;
  if (held == 1) return culprit.rank;
  if (culprit.pid != 0) return (culprit.pid - kFirstPid) * held + culprit.device;
  const std::vector<int>* ranks = RanksOf(c, v.communicator);
  const auto at = static_cast<size_t>(culprit.rank);
  return v.of_communicator && ranks != nullptr && at < ranks->size() ? (*ranks)[at] : culprit.rank;
}

std::set<int> CulpritRanks(const Case& c, const Verdict& v) {
  std::set<int> ranks;
  for (const Culprit& culprit : v.culprits) {
    for (int i = 0; i < culprit.ranks; ++i) ranks.insert(GlobalRank(c, v, culprit) + i);
  }
  return ranks;
}

// Names the other answer that is accepted: that both sides may be wrong, or that the past decides.
bool NamesTheOtherAnswer(const Truth& truth, const std::set<int>& named) {
  return !truth.also.empty() && named == truth.also;
}

bool CulpritsRight(const Case& c, const std::vector<Verdict>& verdicts) {
  const Truth& truth = c.truth;
  std::set<int> named = CulpritRanks(c, verdicts.front());
  if (truth.several) {
    if (named.empty()) return false;
    for (const Verdict& v : verdicts) {
      if (v.is_consequence || truth.causes.count(v.cause) == 0) continue;
      named.merge(CulpritRanks(c, v));
    }
  }
  if (truth.unseen && named.empty()) return true;
  if (NamesTheOtherAnswer(truth, named)) return true;
  if (truth.some_lost) {
    return !named.empty() &&
           std::includes(truth.culprits.begin(), truth.culprits.end(), named.begin(), named.end());
  }
  if (!truth.culprits_among) return named == truth.culprits;
  return std::includes(named.begin(), named.end(), truth.culprits.begin(), truth.culprits.end());
}

// True if records of the divergence may be lost, which the verdict takes into account.
bool MayBeLost(const Case& c, const Verdict& v) {
  return c.truth.comm >= 0 && c.sight.lost_records_percent != 0 &&
         v.certainty != Certainty::kCertain;
}

bool DivergenceRight(const Case& c, const Verdict& v) {
  if (c.truth.comm < 0) return true;
  if (v.communicator != CommId(c.truth.comm)) return false;
  if (MayBeLost(c, v) && v.position > c.truth.position) return true;
  if (v.position == c.truth.position) return true;
  return v.position <= c.truth.position && c.truth.position < v.position_end;
}

}  // namespace

const std::vector<std::string>& FaultNames() {
  static const auto* const kNames = [] {
    auto* names = new std::vector<std::string>();
    for (const Fault& fault : Faults()) names->push_back(fault.name);
    return names;
  }();
  return *kNames;
}

Case MakeFault(uint64_t seed, int most_ranks, const std::string& name) {
  Random random(seed * 2 + 1);
  for (int i = 0; i < kTries; ++i) {
    const Fault& fault = FaultNamed(random, name);
    Case c;
    c.seed = seed;
    c.fault = fault.name;
    const int ranks = ChooseRankCount(random, most_ranks);
    c.sight = MakeSight(random);
    if (!fault.inject(random, ranks, &c)) continue;
    c.timeline = Run(c.plan);
    if (!fault.judge(&c)) continue;
    c.truth.divergence = fault.divergence;
    c.name = absl::StrFormat("fault-%07d-%s-%s", seed, c.fault, c.plan.layout);
    return c;
  }
  Case none;
  none.name = absl::StrFormat("fault-%07d-%s-cannot-be-made", seed, name);
  return none;
}

Case MakeHealthy(uint64_t seed, int most_ranks) {
  Random random(seed * 2);
  Case c;
  c.seed = seed;
  const int ranks = ChooseRankCount(random, most_ranks);
  c.sight = MakeSight(random);
  c.plan = ranks <= 64 && Chance(random, 12) ? MakePipeline(random, ranks)
                                             : MakeJob(random, ranks, ranks > 256);
  Slow(random, &c.plan);
  c.timeline = Run(c.plan);
  c.name = absl::StrFormat("healthy-%07d-%s", seed, c.plan.layout);
  return c;
}

bool HoldSeveral(int ranks_per_process, Case* c) {
  const auto ends_early = [](const RankTimeline& line) {
    return line.died || line.ended != kNever;
  };
  const bool someone_ends =
      std::any_of(c->timeline.ranks.begin(), c->timeline.ranks.end(), ends_early);
  if (someone_ends && !c->timeline.all_ended) return false;
  if (c->plan.ranks_per_host % ranks_per_process != 0) c->plan.ranks_per_host = ranks_per_process;
  c->sight.ranks_per_process = ranks_per_process;
  c->sight.numbers_processes = c->seed % 2 == 0;
  return true;
}

Score ScoreOutcome(const Case& c, const Outcome& outcome) {
  Score score;
  score.confirmed = outcome.confirmed;
  if (c.truth.straggler >= 0) {
    const std::set<int> straggler = {c.truth.straggler};
    score.straggler =
        std::any_of(outcome.warnings.begin(), outcome.warnings.end(),
                    [&](const Verdict& v) { return CulpritRanks(c, v) == straggler; });
  }
  if (!c.truth.hangs) {
    score.cause = score.culprits = score.divergence = !outcome.confirmed;
    return score;
  }
  if (!outcome.confirmed || outcome.verdicts.empty()) return score;
  const Verdict& v = outcome.verdicts.front();
  score.cause = c.truth.causes.count(v.cause) != 0;
  if (MayBeLost(c, v)) score.cause = score.cause || IsContradiction(v.cause);
  score.culprits = CulpritsRight(c, outcome.verdicts);
  score.has_divergence = c.truth.comm >= 0;
  score.divergence = DivergenceRight(c, v);
  score.kind = score.has_divergence && v.divergence == c.truth.divergence;
  score.certain = v.certainty == Certainty::kCertain;
  const bool may_be_certain =
      c.truth.most == Certainty::kCertain && !NamesTheOtherAnswer(c.truth, CulpritRanks(c, v));
  score.wrong_certain = score.certain && (!score.cause || !score.culprits || !may_be_certain);
  score.wrong_likely = v.certainty == Certainty::kLikely && !score.culprits;
  const Verdict& first = outcome.at_first.front();
  if (first.certainty == Certainty::kCertain) {
    const bool right = c.truth.causes.count(first.cause) != 0 && CulpritsRight(c, outcome.at_first);
    score.wrong_certain = score.wrong_certain || !right;
  }
  return score;
}

}  // namespace rollcall::corpus
