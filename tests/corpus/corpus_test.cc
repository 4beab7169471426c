// SPDX-License-Identifier: Apache-2.0
// A sample of the corpus, and properties that hold for every job: irrelevant changes do not
// change the answer, and less evidence never leads to a wrong `certain`.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cases.h"

namespace rollcall::corpus {
namespace {

constexpr int kMostRanks = 32;
constexpr uint64_t kSample = 12;  // cases of each fault

Outcome Watch(const Case& c) { return corpus::Watch(c.plan, c.timeline, c.sight); }

// The part of the outcome that people act on.
std::string Answer(const Outcome& outcome) {
  if (!outcome.confirmed) return "no incident";
  const Verdict& v = outcome.verdicts.front();
  std::vector<int> ranks;
  for (const Culprit& culprit : v.culprits) {
    for (int i = 0; i < culprit.ranks; ++i) ranks.push_back(culprit.rank + i);
  }
  std::sort(ranks.begin(), ranks.end());
  return absl::StrCat(CauseName(v.cause), " ", CertaintyName(v.certainty), " of ",
                      absl::StrJoin(ranks, ","), " at #", v.position, " of ", v.communicator);
}

class EachFault : public testing::TestWithParam<std::string> {
 protected:
  template <typename Check>
  void ForEachCase(Check check) {
    for (uint64_t seed = 1; seed <= kSample; ++seed) check(MakeFault(seed, kMostRanks, GetParam()));
  }
};

TEST_P(EachFault, IsFoundWithItsCulprits) {
  ForEachCase([](const Case& c) {
    const Outcome outcome = Watch(c);
    EXPECT_TRUE(ScoreOutcome(c, outcome).right()) << c.name << ": " << Answer(outcome);
  });
}

TEST_P(EachFault, WithSeveralRanksInAProcessIsNeverWrongAndCertain) {
  ForEachCase([](Case c) {
    if (!HoldSeveral(4, &c)) return;
    const Outcome outcome = Watch(c);
    EXPECT_FALSE(ScoreOutcome(c, outcome).wrong_certain) << c.name << ": " << Answer(outcome);
  });
}

TEST_P(EachFault, GivesTheSameAnswerForTheSameSeed) {
  const Case once = MakeFault(7, kMostRanks, GetParam());
  const Case again = MakeFault(7, kMostRanks, GetParam());
  EXPECT_EQ(once.name, again.name);
  EXPECT_EQ(Answer(Watch(once)), Answer(Watch(again)));
}

// The case with agents that report without delay: then the order of their reports is arbitrary.
Case Prompt(Case c) {
  c.sight.most_delay_ns = 0;
  c.sight.late_hosts_percent = 0;
  return c;
}

TEST_P(EachFault, OrderAndRepetitionOfReportsDoNotMatter) {
  ForEachCase([](const Case& made) {
    Case c = Prompt(made);
    const std::string answer = Answer(Watch(c));
    c.sight.shuffle_hosts = true;
    EXPECT_EQ(Answer(Watch(c)), answer) << c.name << ", hosts in another order";
    c.sight.resent_percent = 60;
    EXPECT_EQ(Answer(Watch(c)), answer) << c.name << ", resent";
  });
}

TEST_P(EachFault, TickTimesDoNotMatter) {
  ForEachCase([](const Case& made) {
    Case c = Prompt(made);
    if (c.sight.lost_records_percent != 0) return;  // lost records depend on the ticks
    c.sight.tick_ns = 100'000'000;
    const Outcome fast = Watch(c);
    c.sight.tick_ns = 1'000'000'000;
    // The last report of a lost host depends on the ticks, and so does the first call that
    // stops.
    if (c.plan.hosts_lost.empty()) {
      EXPECT_EQ(Answer(Watch(c)), Answer(fast)) << c.name;
    } else {
      EXPECT_TRUE(ScoreOutcome(c, Watch(c)).right()) << c.name;
      EXPECT_TRUE(ScoreOutcome(c, fast).right()) << c.name;
    }
  });
}

TEST_P(EachFault, HealthyNeighboursDoNotMatter) {
  ForEachCase([](Case c) {
    const std::string answer = Answer(Watch(c));
    c.sight.healthy_neighbours = 7;
    EXPECT_EQ(Answer(Watch(c)), answer) << c.name;
  });
}

TEST_P(EachFault, AnotherNumberingOfRanksChangesOnlyTheRanksInTheAnswer) {
  ForEachCase([](Case c) {
    const Outcome before = Watch(c);
    std::vector<int> numbers(static_cast<size_t>(c.plan.ranks));
    std::iota(numbers.begin(), numbers.end(), 0);
    std::reverse(numbers.begin(), numbers.end());
    c.sight.renumber = numbers;
    Outcome after = Watch(c);
    if (!after.verdicts.empty()) {
      for (Culprit& culprit : after.verdicts.front().culprits) {
        if (culprit.process >= 0) culprit.rank = c.plan.ranks - 1 - culprit.rank;
      }
    }
    EXPECT_EQ(Answer(after), Answer(before)) << c.name;
  });
}

TEST_P(EachFault, LessEvidenceNeverLeadsToAWrongCertain) {
  ForEachCase([](const Case& made) {
    for (const char* cut : {"markers", "records", "a host"}) {
      Case c = made;
      if (cut == std::string("markers")) c.sight.markers = false;
      if (cut == std::string("records")) c.sight.lost_records_percent = 50;
      if (cut == std::string("a host")) c.sight.blind_hosts = {static_cast<int>(c.seed) % 2};
      if (c.sight.blind_hosts == std::vector<int>{c.plan.HostIndex(c.plan.ranks - 1) + 1}) continue;
      const Outcome outcome = Watch(c);
      if (!outcome.confirmed || !c.truth.hangs) continue;
      for (const std::vector<Verdict>* verdicts : {&outcome.at_first, &outcome.verdicts}) {
        const Verdict& v = verdicts->front();
        if (v.certainty != Certainty::kCertain) continue;
        const bool guilty =
            std::any_of(v.culprits.begin(), v.culprits.end(), [&](const Culprit& k) {
              const bool died = k.rank < c.plan.ranks && v.cause == Cause::kRankDied &&
                                c.timeline.ranks[static_cast<size_t>(k.rank)].died;
              return died || c.truth.culprits.count(k.rank) != 0;
            });
        EXPECT_TRUE(guilty || v.culprits.empty())
            << c.name << " without " << cut << ": " << Answer(outcome) << "\n  " << v.summary;
      }
    }
  });
}

std::string TestName(const testing::TestParamInfo<std::string>& info) { return info.param; }

INSTANTIATE_TEST_SUITE_P(Corpus, EachFault, testing::ValuesIn(FaultNames()), TestName);

TEST(HealthyJobsTest, OpensNoIncidentForSlowRanksPausesOrLostRecords) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    const Case c = MakeHealthy(seed, kMostRanks);
    const Outcome outcome = Watch(c);
    EXPECT_FALSE(outcome.confirmed) << c.name << ": " << Answer(outcome);
  }
}

TEST(HealthyJobsTest, EveryCauseHasAFaultThatEndsInIt) {
  std::set<Cause> causes;
  for (const std::string& fault : FaultNames()) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      const Case c = MakeFault(seed, kMostRanks, fault);
      causes.insert(c.truth.causes.begin(), c.truth.causes.end());
      if (c.truth.straggler >= 0) causes.insert(Cause::kStraggler);
    }
  }
  // The jobs of the corpus are made of calls, and a standstill has none: see tests/standstill.
  causes.insert(Cause::kStandstill);
#define X(name, text) EXPECT_EQ(causes.count(Cause::name), 1u) << text;
  ROLLCALL_CAUSES(X)
#undef X
}

}  // namespace
}  // namespace rollcall::corpus
