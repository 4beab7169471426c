// SPDX-License-Identifier: Apache-2.0
// Which hangs count against a host, and which agents learn of them.
#include "daemon/server/host_hangs.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/server/host_hangs_desk.h"

namespace rollcall {
namespace {

v1::Incident Confirmed(const std::string& id, const std::string& host,
                       const std::string& cause = "stalled_in_flight",
                       const std::string& certainty = "certain") {
  v1::Incident incident;
  incident.set_id(id);
  incident.set_job("pretrain");
  incident.mutable_confirmed_at()->set_seconds(1);
  v1::Verdict* verdict = incident.add_verdicts();
  verdict->set_cause(cause);
  verdict->set_certainty(certainty);
  verdict->add_culprits()->set_host(host);
  verdict->mutable_culprits(0)->set_gpu_uuid("GPU-1");
  verdict->set_culprit_hosts_total(1);
  return incident;
}

std::vector<std::string> HostsOf(const std::vector<v1::Incident>& incidents) {
  std::vector<std::string> hosts;
  for (const auto& [host, hangs] : HangsByHost(incidents)) hosts.push_back(host);
  return hosts;
}

using Hosts = std::vector<std::string>;

TEST(HostHangsTest, BlamesTheOneHostOfTheRootCause) {
  const auto hangs = HangsByHost({Confirmed("a", "node-7"), Confirmed("b", "node-7")});
  ASSERT_EQ(hangs.size(), 1u);
  ASSERT_EQ(hangs.at("node-7").hangs_size(), 2);
  EXPECT_EQ(hangs.at("node-7").hangs(0).incident(), "a");
  EXPECT_EQ(hangs.at("node-7").hangs(0).gpus(0), "GPU-1");
}

TEST(HostHangsTest, AMistakeOfTheProgramSpeaksAgainstNoHost) {
  for (const char* cause : {"missing_rank", "operation_mismatch", "deadlock", "rank_exited"}) {
    EXPECT_EQ(HostsOf({Confirmed("a", "node-7", cause)}), Hosts()) << cause;
  }
  for (const char* cause : {"host_lost", "blocked_before_start", "stalled_in_flight"}) {
    EXPECT_EQ(HostsOf({Confirmed("a", "node-7", cause)}), Hosts{"node-7"}) << cause;
  }
}

TEST(HostHangsTest, AVerdictThatIsOnlyPossibleDoesNotCount) {
  EXPECT_EQ(HostsOf({Confirmed("a", "node-7", "stalled_in_flight", "possible")}), Hosts());
  EXPECT_EQ(HostsOf({Confirmed("a", "node-7", "stalled_in_flight", "likely")}), Hosts{"node-7"});
}

TEST(HostHangsTest, SeveralHostsAreNotBlamed) {
  v1::Incident two = Confirmed("a", "node-7");
  two.mutable_verdicts(0)->add_culprits()->set_host("node-8");
  EXPECT_EQ(HostsOf({two}), Hosts());
  v1::Incident many = Confirmed("a", "node-7");
  many.mutable_verdicts(0)->set_culprit_hosts_total(2);  // the other one is not listed
  EXPECT_EQ(HostsOf({many}), Hosts());
}

TEST(HostHangsTest, OnlyOpenConfirmedHangsCount) {
  v1::Incident suspected = Confirmed("a", "node-7");
  suspected.clear_confirmed_at();
  v1::Incident closed = Confirmed("b", "node-7");
  closed.mutable_closed_at()->set_seconds(2);
  EXPECT_EQ(HostsOf({suspected, closed}), Hosts());
}

TEST(HostHangsTest, AHostHasAtMost64) {
  std::vector<v1::Incident> incidents;
  for (int i = 0; i < 70; ++i) incidents.push_back(Confirmed(absl::StrCat(i), "node-7"));
  EXPECT_EQ(HangsByHost(incidents).at("node-7").hangs_size(), kMostHangsOfHost);
}

class HostHangsDeskTest : public testing::Test {
 protected:
  static AgentName Agent(const std::string& host, bool wants = true) {
    AgentName agent;
    agent.host = host;
    agent.id = absl::StrCat(host, "/1");
    agent.wants_host_hangs = wants;
    return agent;
  }
  // The messages since the last call: agent, and the incidents in it.
  std::vector<std::pair<std::string, int>> TakeTold() { return std::exchange(told_, {}); }

  std::vector<std::pair<std::string, int>> told_;
  HostHangsDesk desk_{[this](const std::string& agent, const v1::DaemonMessage& message) {
    told_.emplace_back(agent, message.host_hangs().hangs_size());
    return true;
  }};
};

using Told = std::vector<std::pair<std::string, int>>;

TEST_F(HostHangsDeskTest, TellsTheHostsAgentOfEachChange) {
  desk_.Connected(Agent("node-7"));
  desk_.Connected(Agent("node-8"));
  desk_.Update({Confirmed("a", "node-7")});
  EXPECT_EQ(TakeTold(), (Told{{"node-7/1", 1}}));
  desk_.Update({Confirmed("a", "node-7")});
  EXPECT_EQ(TakeTold(), Told());
  desk_.Update({});
  EXPECT_EQ(TakeTold(), (Told{{"node-7/1", 0}}));
}

TEST_F(HostHangsDeskTest, TellsAllAfterEachWelcomeAlsoThatThereIsNone) {
  desk_.Connected(Agent("node-7"));
  desk_.Update({Confirmed("a", "node-7")});
  TakeTold();
  desk_.Welcomed("node-7/1");
  EXPECT_EQ(TakeTold(), (Told{{"node-7/1", 1}}));
  desk_.Connected(Agent("node-8"));
  desk_.Welcomed("node-8/1");
  EXPECT_EQ(TakeTold(), (Told{{"node-8/1", 0}}));
}

TEST_F(HostHangsDeskTest, TellsNobodyWhoDoesNotWantToKnowOrHasGone) {
  desk_.Connected(Agent("node-7", false));
  EXPECT_FALSE(desk_.HasAgents());
  desk_.Connected(Agent("node-8"));
  desk_.Disconnected("node-8/1");
  EXPECT_FALSE(desk_.HasAgents());
  desk_.Update({Confirmed("a", "node-7"), Confirmed("b", "node-8")});
  desk_.Welcomed("node-7/1");
  EXPECT_EQ(TakeTold(), Told());
}

}  // namespace
}  // namespace rollcall
