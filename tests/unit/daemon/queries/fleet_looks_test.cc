// SPDX-License-Identifier: Apache-2.0
// Jobs without the library, and looks at them, through several daemons.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleet_fixture.h"

namespace rollcall {
namespace {

using testing::ElementsAre;

// Lists the ranks of a job that runs without the library.
void ListRanks(const std::string& host, int first, int count, UnrecordedBook* book,
               uint32_t uid = 1000) {
  v1::UnrecordedProcesses list;
  for (int rank = first; rank < first + count; ++rank) {
    v1::UnrecordedProcess* process = list.add_processes();
    process->set_pid(100 + rank);
    process->set_start_time(7);
    process->set_script("train.py");
    process->mutable_identity()->set_global_rank(rank);
    process->mutable_identity()->set_world_size(4);
    process->mutable_identity()->set_uid(uid);
    process->add_marks()->set_kind("rendezvous");
  }
  AgentName agent;
  agent.id = agent.host = host;
  book->Set(agent, list);
}

class FleetLooksTest : public FleetQueriesTest {};

TEST_F(FleetLooksTest, JoinsAJobWithoutTheLibraryWhateverDaemonsItsAgentsTell) {
  ListRanks("node-1", 0, 2, &a_.unrecorded);
  ListRanks("node-2", 2, 2, &b_.unrecorded);
  ListRanks("node-2", 2, 2, &c_.unrecorded);  // this agent has streams to two daemons
  const v1::StatusResponse status = StatusOf(*c_.fleet, {}, false);
  ASSERT_EQ(status.unrecorded_size(), 1);
  EXPECT_EQ(status.unrecorded(0).ranks(), 4);
  EXPECT_THAT(status.unrecorded(0).hosts(), ElementsAre("node-1", "node-2"));
}

TEST_F(FleetLooksTest, JobsOfTwoUsersWithOneNameAreNotMixed) {
  ListRanks("node-1", 0, 2, &c_.unrecorded);
  ListRanks("node-2", 2, 2, &b_.unrecorded, 1001);
  EXPECT_EQ(StatusOf(*c_.fleet, {}, false).unrecorded_size(), 2);
  v1::LookRequest request;
  request.set_job("train.py");
  request.set_apart_ms(2000);
  const auto looks = c_.fleet->LookAtJob(request, [] { return true; });
  ASSERT_TRUE(looks.ok()) << looks.status();
  ASSERT_EQ(looks->size(), 1u);
  EXPECT_EQ(looks->front().host(), "node-1");
}

TEST_F(FleetLooksTest, LooksAtEachHostOfAJobOnceThroughItsDaemon) {
  ListRanks("node-1", 0, 2, &a_.unrecorded);
  ListRanks("node-2", 2, 2, &b_.unrecorded);
  ListRanks("node-2", 2, 2, &c_.unrecorded);
  v1::LookRequest request;
  request.set_job("train.py");
  request.set_apart_ms(2000);
  const auto looks = c_.fleet->LookAtJob(request, [] { return true; });
  ASSERT_TRUE(looks.ok()) << looks.status();
  std::vector<std::string> hosts;
  for (const v1::HostLook& look : *looks) {
    hosts.push_back(look.host());
    EXPECT_EQ(look.error(), "");
    EXPECT_EQ(look.processes_size(), 2);
    EXPECT_EQ(look.processes(0).samples_size(), 3);
  }
  EXPECT_THAT(hosts, testing::UnorderedElementsAre("node-1", "node-2"));
}

TEST_F(FleetLooksTest, ALookOfAnotherDaemonEndsWhenNobodyWaitsForIt) {
  ListRanks("node-2", 2, 2, &b_.unrecorded);
  b_.silent_agents = true;
  v1::LookRequest request;
  request.set_job("train.py");
  request.set_apart_ms(2000);
  const auto looks = c_.fleet->LookAtJob(request, [] { return false; });
  EXPECT_TRUE(absl::IsCancelled(looks.status())) << looks.status();
  EXPECT_TRUE(StatusOf(*c_.fleet, {}, false).silent_daemons().empty());
}

TEST_F(FleetLooksTest, LooksOnlyAtTheHostsThatAreWanted) {
  ListRanks("node-1", 0, 2, &a_.unrecorded);
  ListRanks("node-2", 2, 2, &b_.unrecorded);
  v1::LookRequest request;
  request.set_job("train.py");
  request.set_apart_ms(2000);
  request.add_hosts("node-2");
  const auto looks = c_.fleet->LookAtJob(request, [] { return true; });
  ASSERT_TRUE(looks.ok()) << looks.status();
  ASSERT_EQ(looks->size(), 1u);
  EXPECT_EQ(looks->front().host(), "node-2");
}

}  // namespace
}  // namespace rollcall
