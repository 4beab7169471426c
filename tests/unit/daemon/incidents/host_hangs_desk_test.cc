// SPDX-License-Identifier: Apache-2.0
// Which agents learn of the hangs that their hosts are blamed for.
#include "daemon/incidents/host_hangs_desk.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

v1::HostHangs::Hang Hang(const std::string& incident, const std::string& tenant = "ml",
                         bool is_broken = false) {
  v1::HostHangs::Hang hang;
  hang.set_incident(incident);
  hang.set_tenant(tenant);
  hang.set_is_broken(is_broken);
  return hang;
}

AgentName Agent(const std::string& host) {
  AgentName agent;
  agent.host = host;
  agent.id = absl::StrCat(host, "/1");
  agent.wants_host_hangs = true;
  return agent;
}

// Agent, and the incidents sent to it.
using Told = std::vector<std::pair<std::string, std::vector<std::string>>>;

class HostHangsDeskTest : public testing::Test {
 protected:
  Told Update(const HangsByHost& hangs) {
    told_.clear();
    desk_.Update(hangs);
    return told_;
  }

  Told told_;
  bool reads_ = true;
  HostHangsDesk desk_{[this](const std::string& agent, const v1::DaemonMessage& message) {
    if (!reads_) return false;
    std::vector<std::string> incidents;
    for (const auto& hang : message.host_hangs().hangs()) incidents.push_back(hang.incident());
    told_.emplace_back(agent, incidents);
    return true;
  }};
};

TEST_F(HostHangsDeskTest, TellsTheHostsAgentOfEachChange) {
  desk_.Connected(Agent("node-7"));
  desk_.Connected(Agent("node-8"));
  EXPECT_EQ(Update({{"node-7", {Hang("a")}}}), (Told{{"node-7/1", {"a"}}, {"node-8/1", {}}}));
  EXPECT_EQ(Update({{"node-7", {Hang("a")}}}), Told());
  EXPECT_EQ(Update({{"node-7", {Hang("a"), Hang("b")}}}), (Told{{"node-7/1", {"a", "b"}}}));
  EXPECT_EQ(Update({}), (Told{{"node-7/1", {}}}));
}

TEST_F(HostHangsDeskTest, TellsANewStreamAllAsItIsNow) {
  desk_.Connected(Agent("node-7"));
  Update({{"node-7", {Hang("a")}}});
  desk_.Disconnected(Agent("node-7"));
  EXPECT_FALSE(desk_.HasAgents());
  desk_.Connected(Agent("node-7"));
  EXPECT_EQ(Update({}), (Told{{"node-7/1", {}}}));
}

TEST_F(HostHangsDeskTest, KnowsAnAgentWhoseOldStreamEndsAfterItsNewOneBegan) {
  desk_.Connected(Agent("node-7"));
  Update({});
  desk_.Connected(Agent("node-7"));
  desk_.Disconnected(Agent("node-7"));
  EXPECT_EQ(Update({{"node-7", {Hang("a")}}}), (Told{{"node-7/1", {"a"}}}));
}

TEST_F(HostHangsDeskTest, TellsAgainWhatCouldNotBeSent) {
  desk_.Connected(Agent("node-7"));
  reads_ = false;
  Update({{"node-7", {Hang("a")}}});
  reads_ = true;
  EXPECT_EQ(Update({{"node-7", {Hang("a")}}}), (Told{{"node-7/1", {"a"}}}));
}

TEST_F(HostHangsDeskTest, AnAgentLearnsNothingOfOtherTenants) {
  AgentName agent = Agent("node-7");
  agent.tenants = {"research"};
  desk_.Connected(agent);
  EXPECT_EQ(Update({{"node-7", {Hang("a", "ml"), Hang("b", "research")}}}),
            (Told{{"node-7/1", {"b"}}}));
}

TEST_F(HostHangsDeskTest, SendsNothingToAgentsThatDidNotAsk) {
  AgentName agent = Agent("node-7");
  agent.wants_host_hangs = false;
  desk_.Connected(agent);
  EXPECT_FALSE(desk_.HasAgents());
  EXPECT_EQ(Update({{"node-7", {Hang("a")}}}), Told());
}

TEST_F(HostHangsDeskTest, SendsThoseWithBrokenHardwareOfTooManyHangs) {
  desk_.Connected(Agent("node-7"));
  HangsByHost hangs;
  for (int i = 0; i < 70; ++i) hangs["node-7"].push_back(Hang(absl::StrCat(i)));
  hangs["node-7"].push_back(Hang("broken", "ml", true));
  const Told told = Update(hangs);
  ASSERT_EQ(told.at(0).second.size(), HostHangsDesk::kMostOfHost);
  EXPECT_EQ(told.at(0).second.front(), "broken");
}

}  // namespace
}  // namespace rollcall
