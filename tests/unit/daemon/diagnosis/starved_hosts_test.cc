// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/hosts/starved_hosts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "job_builder.h"

namespace rollcall {
namespace {

// The certainty of a missing rank if tasks of its host wait for a CPU this often, in percent.
Certainty CertaintyAt(int64_t percent, const char* host, int64_t looked_ns = At(40)) {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 2}, At(10));
  HostFacts facts;
  facts.gathered_ns = looked_ns;
  HostFact fact;
  fact.kind = HostFactKind::kCpuPressure;
  fact.value = percent;
  facts.facts = {fact};
  job.state.host_facts[host] = facts;
  const std::vector<Verdict> verdicts = Diagnose(job.state, At(70), Limits());
  EXPECT_EQ(verdicts.size(), 1u);
  return verdicts.empty() ? Certainty::kPossible : verdicts.front().certainty;
}

TEST(StarvedHostsTest, AWaitOnAStarvedHostIsNotCertain) {
  EXPECT_EQ(CertaintyAt(87, "node-3"), Certainty::kLikely);
  EXPECT_EQ(CertaintyAt(87, "node-0"), Certainty::kLikely) << "a rank there waits";
}

TEST(StarvedHostsTest, ABusyHostIsNotStarved) {
  EXPECT_EQ(CertaintyAt(40, "node-3"), Certainty::kCertain);
}

// Rank 3 uses the CPU, or waits for a child that does, on a host with that pressure. How long the
// wait counts after 60 s.
int64_t CountedOf(Motion motion, int64_t percent, bool has_slow_children = false) {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 2}, At(10));
  job.process(3).cpu_moving = !has_slow_children;
  job.process(3).has_slow_children = has_slow_children;
  job.process(3).motion = motion;
  HostFact fact;
  fact.kind = HostFactKind::kCpuPressure;
  fact.value = percent;
  HostFacts facts;
  facts.gathered_ns = At(40);
  facts.facts = {fact};
  job.state.host_facts["node-3"] = facts;
  Limits limits;
  limits.hang_after_ns = 20 * kSecondNs;
  const std::vector<Verdict> verdicts = Diagnose(job.state, At(70), limits);
  EXPECT_EQ(verdicts.size(), 1u);
  if (verdicts.empty()) return 0;
  return verdicts[0].waited_ns - std::max<int64_t>(verdicts[0].counts_from_ns - At(10), 0);
}

TEST(StarvedHostsTest, ARankThatWorksThereHasThreeTimesAsLong) {
  EXPECT_EQ(CountedOf(Motion::kMoving, 87), 20 * kSecondNs);
  EXPECT_EQ(CountedOf(Motion::kUnknown, 87), 20 * kSecondNs);
  EXPECT_EQ(CountedOf(Motion::kFrozen, 87), 60 * kSecondNs) << "it stands";
  EXPECT_EQ(CountedOf(Motion::kMoving, 40), 60 * kSecondNs) << "it has a CPU";
}

TEST(StarvedHostsTest, SoHasARankWhoseChildWorksThere) {
  EXPECT_EQ(CountedOf(Motion::kFrozen, 87, true), 20 * kSecondNs);
  EXPECT_EQ(CountedOf(Motion::kFrozen, 40, true), 60 * kSecondNs) << "the child has a CPU";
}

TEST(StarvedHostsTest, OtherHostsAndEarlierLooksSayNothing) {
  EXPECT_EQ(CertaintyAt(87, "node-9"), Certainty::kCertain);
  EXPECT_EQ(CertaintyAt(87, "node-3", At(5)), Certainty::kCertain);
}

}  // namespace
}  // namespace rollcall
