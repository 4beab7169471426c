// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/hosts/starved_hosts.h"

#include <gtest/gtest.h>

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

TEST(StarvedHostsTest, OtherHostsAndEarlierLooksSayNothing) {
  EXPECT_EQ(CertaintyAt(87, "node-9"), Certainty::kCertain);
  EXPECT_EQ(CertaintyAt(87, "node-3", At(5)), Certainty::kCertain);
}

}  // namespace
}  // namespace rollcall
