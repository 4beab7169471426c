// SPDX-License-Identifier: Apache-2.0
// How long a first report waits for stacks, and what it says where they have not come.
#include "daemon/incidents/awaited_stacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rollcall/v1/incident.pb.h"

namespace rollcall {
namespace {

using testing::ElementsAre;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kBegin = 1000 * kSecond;

// Ranks 0 and up, one process each, on one host.
StackRequest Request(int ranks, bool is_rest = false) {
  StackRequest request;
  request.is_rest = is_rest;
  for (int rank = 0; rank < ranks; ++rank) {
    request.processes.push_back({"node-1", 100 + rank, 0, "agent-1", rank, rank, rank == 0});
  }
  return request;
}

StackResult Reply(int rank) {
  StackResult result;
  result.stack.set_host("node-1");
  result.stack.set_pid(100 + rank);
  return result;
}

JobState HeardAt(int64_t heard_ns, const std::string& agent = "agent-1") {
  JobState state;
  state.agents.emplace_back();
  state.agents[0].id = agent;
  state.agents[0].heard_ns = heard_ns;
  return state;
}

std::vector<std::string> Lacking(const AwaitedStacks& awaited, int64_t now_ns,
                                 v1::Incident* incident) {
  if (incident->verdicts().empty()) incident->add_verdicts()->add_missing_evidence("another fact");
  awaited.Explain(now_ns, incident);
  const auto& lines = incident->verdicts(0).missing_evidence();
  return {lines.begin(), lines.end()};
}

TEST(AwaitedStacksTest, AReportWaitsTwoSecondsForAnyAgent) {
  AwaitedStacks awaited;
  EXPECT_TRUE(awaited.empty());
  awaited.Add(Request(2), kBegin);
  EXPECT_FALSE(awaited.empty());
  EXPECT_TRUE(awaited.MayComeSoon(kBegin + 2 * kSecond - 1));
  EXPECT_FALSE(awaited.MayComeSoon(kBegin + 2 * kSecond));
}

TEST(AwaitedStacksTest, AReportWaitsLongerForAnAgentThatReports) {
  AwaitedStacks awaited;
  awaited.Add(Request(2), kBegin);
  awaited.Hear(HeardAt(kBegin + 2 * kSecond));
  EXPECT_TRUE(awaited.MayComeSoon(kBegin + 3 * kSecond - 1));
  EXPECT_FALSE(awaited.MayComeSoon(kBegin + 3 * kSecond)) << "silent for a second";
  awaited.Hear(HeardAt(kBegin + 4 * kSecond));
  EXPECT_FALSE(awaited.MayComeSoon(kBegin + 4 * kSecond)) << "no longer than this";
}

TEST(AwaitedStacksTest, AReportWaitsNoLongerForWhomItDoesNotAwait) {
  AwaitedStacks awaited;
  awaited.Add(Request(1), kBegin);
  awaited.Hear(HeardAt(kBegin + 2 * kSecond, "agent-2"));
  EXPECT_FALSE(awaited.MayComeSoon(kBegin + 2 * kSecond));

  AwaitedStacks rest;
  rest.Add(Request(1, true), kBegin);
  rest.Hear(HeardAt(kBegin + 2 * kSecond));
  EXPECT_FALSE(rest.MayComeSoon(kBegin + 2 * kSecond)) << "stacks that are only merged";
}

TEST(AwaitedStacksTest, AReportSaysWhoseStacksHaveNotCome) {
  AwaitedStacks awaited;
  awaited.Add(Request(4), kBegin);
  awaited.Remove(Reply(2));
  v1::Incident incident;
  EXPECT_THAT(Lacking(awaited, kBegin + 2 * kSecond, &incident),
              ElementsAre("another fact", "stacks of ranks 0-1,3: not there within 2 s"));
  for (const int rank : {0, 1, 3}) awaited.Remove(Reply(rank));
  EXPECT_TRUE(awaited.empty());
  EXPECT_THAT(Lacking(awaited, kBegin + 3 * kSecond, &incident), ElementsAre("another fact"));
}

TEST(AwaitedStacksTest, AnEarlierSampleIsEnough) {
  AwaitedStacks awaited;
  awaited.Add(Request(1), kBegin);
  v1::Incident incident;
  v1::ProcessStack* stack = incident.add_stacks();
  *stack = Reply(0).stack;
  EXPECT_THAT(Lacking(awaited, kBegin + 2 * kSecond, &incident).size(), 2u) << "it has no threads";
  stack->add_threads();
  EXPECT_THAT(Lacking(awaited, kBegin + 2 * kSecond, &incident), ElementsAre("another fact"));
}

}  // namespace
}  // namespace rollcall
