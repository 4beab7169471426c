// SPDX-License-Identifier: Apache-2.0
// What a job may take of the daemon's memory, whatever its processes claim.
#include <gtest/gtest.h>
#include <malloc.h>

#include <memory>
#include <string>
#include <vector>

#include "daemon/model/job_model.h"
#include "reporting_ranks.h"

namespace rollcall {
namespace {

size_t HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

// A rank of a large communicator that has sent nothing else.
CommProgress Claim(uint64_t id, int32_t rank = 262'143, int32_t size = 262'144) {
  CommProgress progress;
  progress.index = static_cast<uint32_t>(id);
  progress.id = id;
  progress.rank = rank;
  progress.size = size;
  progress.state = MemberState::kReady;
  return progress;
}

uint64_t CountDropped(JobModel* model, Dropped what) {
  return model->TakeDropped()[static_cast<size_t>(what)];
}

TEST(JobModelLimitsTest, AClaimedSizeOrRankTakesNoMemory) {
  JobModel model("job");
  const int32_t process = model.AddProcess("node", 100, 1);
  const size_t before = HeapBytes();
  for (uint64_t id = 1; id <= 1000; ++id) model.SetProgress(process, Claim(id), kStart);
  EXPECT_EQ(model.state().communicators.size(), 1000u);
  EXPECT_LT(HeapBytes() - before, size_t{4} << 20);
}

// Ranks of one communicator that disagree with its first rank about its size.
TEST(JobModelLimitsTest, CountsClaimedSizesBeyondTheLimit) {
  constexpr int32_t kSize = 3000;
  JobModel model("job");
  for (int32_t rank = 0; rank < 1 + static_cast<int32_t>(limits::kClaimedSizes) + 4; ++rank) {
    CommProgress progress = Claim(kComm);
    progress.rank = rank;
    progress.size = rank == 0 ? kSize : kSize + 1;
    model.SetProgress(model.AddProcess("node", 100 + rank, 1), progress, kStart);
  }
  EXPECT_EQ(model.state().communicators.at(kComm).claims.size(), limits::kClaimedSizes);
  EXPECT_EQ(CountDropped(&model, Dropped::kSizes), 4u);
}

TEST(JobModelLimitsTest, CountsTheHostsWhoseFactsItForgets) {
  JobModel model("job");
  for (size_t i = 0; i < limits::kHostsWithFacts; ++i) {
    model.SetHostFacts("node-" + std::to_string(i), HostFacts());
  }
  model.SetHostFacts("node-7", HostFacts());  // it is known
  EXPECT_EQ(model.state().host_facts.size(), limits::kHostsWithFacts);
  EXPECT_EQ(CountDropped(&model, Dropped::kHostFacts), 0u);
  model.SetHostFacts("another", HostFacts());
  EXPECT_EQ(model.state().host_facts.size(), 1u);
  EXPECT_EQ(CountDropped(&model, Dropped::kHostFacts), limits::kHostsWithFacts);
}

TEST(JobModelLimitsTest, AProcessHasALimitOfCommunicators) {
  JobModel model("job");
  const int32_t process = model.AddProcess("node", 100, 1);
  for (uint64_t id = 1; id <= 1100; ++id) model.SetProgress(process, Claim(id), kStart);
  EXPECT_EQ(model.state().communicators.size(), limits::kCommunicatorsOfProcess);
  EXPECT_EQ(CountDropped(&model, Dropped::kCommunicators), 76u);
  EXPECT_EQ(CountDropped(&model, Dropped::kCommunicators), 0u);
}

TEST(JobModelLimitsTest, AllJobsTogetherHaveALimitOfMembers) {
  const auto fleet = std::make_shared<FleetBudget>(limits::kRecordBytes, 10);
  std::vector<JobModel> models;
  for (int i = 0; i < 2; ++i) {
    models.emplace_back(JobKey("job"), fleet);
    const int32_t process = models.back().AddProcess("node", 100, 1);
    for (uint64_t id = 1; id <= 6; ++id) models.back().SetProgress(process, Claim(id), kStart);
  }
  EXPECT_EQ(models[1].state().communicators.size(), 4u);
  EXPECT_EQ(CountDropped(&models[1], Dropped::kMembers), 2u);
  models.erase(models.begin());
  models[0].SetProgress(0, Claim(7), kStart);
  EXPECT_EQ(models[0].state().communicators.size(), 5u);
}

TEST(JobModelLimitsTest, OneUserLeavesMembersForTheJobsOfOthers) {
  const auto fleet = std::make_shared<FleetBudget>(limits::kRecordBytes, 40);
  std::vector<JobModel> models;
  for (const char* user : {"greedy", "greedy", "ann"}) {
    models.emplace_back(JobKey("job"), fleet, user);
    const int32_t process = models.back().AddProcess("node", 100, 1);
    for (uint64_t id = 1; id <= 25; ++id) models.back().SetProgress(process, Claim(id), kStart);
  }
  EXPECT_EQ(models[0].state().communicators.size(), 25u);
  EXPECT_EQ(models[1].state().communicators.size(), 5u) << "three quarters, with the first job";
  EXPECT_EQ(models[2].state().communicators.size(), 8u) << "and a share of what is left";
}

TEST(JobModelLimitsTest, CutsTextsAtACharacter) {
  JobModel model("job");
  const int32_t process = model.AddProcess("node", 100, 1);
  CommProgress progress = Claim(1);
  progress.name = std::string(254, 'a') + "\u00e9";
  model.SetProgress(process, progress, kStart);
  EXPECT_EQ(model.state().communicators.at(1).name, std::string(254, 'a'));
  ProcessEvidence evidence;
  evidence.error = std::string(5000, 'e');
  evidence.phase = std::string(5000, 'p');
  evidence.blocked.resize(2000);
  model.SetEvidence(process, evidence);
  EXPECT_EQ(model.state().processes[0].error.size(), limits::kError);
  EXPECT_EQ(model.state().processes[0].phase.size(), limits::kName);
  EXPECT_EQ(model.state().processes[0].blocked.size(), limits::kBlockedCalls);
  model.AddSites(process, 0, std::vector<std::string>(2000, std::string(1000, 's')));
  EXPECT_EQ(model.state().processes[0].sites.size(), limits::kSites);
  EXPECT_EQ(model.state().processes[0].sites[0].size(), limits::kSite);
  const DroppedCounts dropped = model.TakeDropped();
  EXPECT_EQ(dropped[static_cast<size_t>(Dropped::kTexts)], 1u + 2u + limits::kSites + 1);
  EXPECT_EQ(dropped[static_cast<size_t>(Dropped::kSites)], 1u);
  EXPECT_EQ(dropped[static_cast<size_t>(Dropped::kBlockedCalls)], 1u);
}

// An agent that claims many processes with long texts.
TEST(JobModelLimitsTest, TheTextsOfAllProcessesHaveALimit) {
  constexpr size_t kMost = size_t{1} << 20;
  const auto fleet =
      std::make_shared<FleetBudget>(limits::kRecordBytes, limits::kMembers, 0, kMost);
  std::vector<JobModel> models;
  const size_t before = HeapBytes();
  for (int job = 0; job < 2; ++job) {
    models.emplace_back(JobKey("job"), fleet);
    for (int pid = 0; pid < 500; ++pid) {
      const int32_t process = models.back().AddProcess("node", pid, 1);
      ProcessIdentity identity;
      identity.command = identity.node = identity.pod = std::string(4096, 'c');
      identity.global_rank = pid;
      models.back().SetIdentity(process, identity);
      ProcessEvidence evidence;
      evidence.error = std::string(1024, 'e');
      evidence.blocked.resize(1024);
      models.back().SetEvidence(process, evidence);
      models.back().SetStacks(process, {Motion::kUnknown, std::string(65536, 'w'), {}, false, 1});
    }
  }
  EXPECT_LT(HeapBytes() - before, kMost + (size_t{2} << 20)) << "1,000 processes take memory too";
  EXPECT_EQ(models[1].state().processes.size(), 500u);
  EXPECT_EQ(models[1].state().processes[499].global_rank, 499);
  EXPECT_EQ(models[1].state().processes[499].host, "node");
  EXPECT_GT(CountDropped(&models[1], Dropped::kTexts), 1000u);
  models.erase(models.begin());
  models[0].SetStacks(0, {Motion::kUnknown, std::string(65536, 'w'), {}, false, 1});
  EXPECT_EQ(models[0].state().processes[0].stack_words.size(), 65536u) << "there is room again";
}

TEST(JobModelLimitsTest, TheTransfersOfAllProcessesHaveALimit) {
  JobModel model(JobKey("job"));
  std::vector<NetworkSample> large(1);
  large[0].states.resize(limits::kNetworkStatesOfJob / 2);
  for (int pid = 0; pid < 3; ++pid) {
    model.SetNetwork(model.AddProcess("node", pid, 1), large, 10 + pid);
  }
  EXPECT_NE(model.state().processes[1].network, nullptr);
  EXPECT_EQ(model.state().processes[1].network_ns, 11);
  EXPECT_EQ(model.state().processes[2].network, nullptr);
  EXPECT_EQ(model.state().processes[2].network_ns, 0);
  EXPECT_EQ(CountDropped(&model, Dropped::kStacks), 1U);
  model.SetNetwork(0, {}, 20);
  model.SetNetwork(2, large, 21);
  EXPECT_EQ(model.state().processes[2].network_ns, 21) << "there is room again";
  model.SetNetwork(7, large, 22);  // no process of the job
}

TEST(JobModelLimitsTest, AShorterTextMakesRoom) {
  const auto fleet =
      std::make_shared<FleetBudget>(limits::kRecordBytes, limits::kMembers, 0, 10'000);
  JobModel model(JobKey("job"), fleet);
  for (int pid = 0; pid < 1000; ++pid) {
    const int32_t process = model.AddProcess("node", pid, 1);
    ProcessIdentity identity;
    identity.command = std::string(4096, 'c');
    model.SetIdentity(process, identity);
    EXPECT_EQ(model.state().processes.back().command.size(), 4096u) << pid;
    model.SetIdentity(process, ProcessIdentity());
  }
}

CommProgress Named(uint64_t id, MemberState state = MemberState::kReady) {
  CommProgress progress = Claim(id, 0, 1);
  progress.name = std::string(200, 'n');
  progress.state = state;
  return progress;
}

TEST(JobModelLimitsTest, TheNamesOfAllCommunicatorsHaveALimit) {
  const auto fleet =
      std::make_shared<FleetBudget>(limits::kRecordBytes, limits::kMembers, 0, 10'000);
  JobModel model(JobKey("job"), fleet);
  const int32_t process = model.AddProcess("node", 100, 1);
  for (uint64_t id = 1; id <= 100; ++id) model.SetProgress(process, Named(id), kStart);
  const auto& communicators = model.state().communicators;
  EXPECT_EQ(communicators.size(), 100u);
  EXPECT_EQ(communicators.at(49).name, Named(49).name);
  EXPECT_EQ(communicators.at(50).name, "") << "49 names of 201 bytes have room";
  EXPECT_EQ(CountDropped(&model, Dropped::kTexts), 51u);
  model.SetProgress(process, Named(1, MemberState::kDestroyed), kStart);
  model.SetProgress(process, Named(50), kStart);
  EXPECT_EQ(communicators.at(50).name, Named(50).name) << "there is room again";
}

TEST(JobModelLimitsTest, LinesWithoutTextCountForTheLimitOfTheirMemory) {
  constexpr size_t kSitesWithRoom = 3;
  const auto fleet =
      std::make_shared<FleetBudget>(limits::kRecordBytes, 10, kSitesWithRoom * sizeof(std::string));
  JobModel model(JobKey("job"), fleet);
  const int32_t process = model.AddProcess("node", 100, 1);
  model.AddSites(process, 0, std::vector<std::string>(100));
  EXPECT_EQ(model.state().processes[0].sites.size(), kSitesWithRoom);
  model.AddSites(process, 0, {"train.py:7"});  // in place of the lines without text
  EXPECT_EQ(model.state().processes[0].sites.size(), 1u);
}

// A job whose ranks have made many calls.
void AddCalls(JobModel* model, int ranks, uint64_t calls) {
  for (int rank = 0; rank < ranks; ++rank) {
    const int32_t process = model->AddProcess("node", 100 + rank, 1);
    CommProgress progress = Claim(1, rank, ranks);
    for (uint64_t call = 0; call < calls; ++call) {
      CallRecord record;
      record.index = record.position = call;
      record.args.op = Op::kAllReduce;
      record.entered_ns = kStart;
      progress.records.push_back(record);
    }
    for (uint64_t n = 16; n <= calls; n += 16) progress.checkpoints.push_back({n, n});
    progress.entered = calls;
    model->SetProgress(process, progress, kStart);
  }
}

TEST(JobModelLimitsTest, AMemberTakesRoomForTheRecordsThatItKeepsAndNoMore) {
  JobModel model("job");
  const size_t before = HeapBytes();
  AddCalls(&model, 8, 6000);
  const size_t most = 8 * (1024 * 3 / 2 * sizeof(CallRecord) + (size_t{16} << 10));
  EXPECT_LT(HeapBytes() - before, most);
}

// Each restart is another agent. A process without an agent would be stale for ever.
TEST(JobModelLimitsTest, AnAgentThatRestartsAgainAndAgainHasAnIndexEachTime) {
  JobModel model("job");
  const int32_t process = model.AddProcess("node", 100, 1);
  AgentHeard gone;
  gone.stale = true;
  for (size_t i = 0; i <= limits::kAgentsOfJob; ++i) {
    const int32_t agent = model.AddAgent("node/" + std::to_string(i), "node");
    ASSERT_GE(agent, 0) << i;
    model.SetAgent(process, agent);
    ASSERT_EQ(model.state().processes[0].agent, agent);
    model.SetAgentHeard(agent, gone);
  }
  EXPECT_EQ(model.state().agents.size(), 2u);
  EXPECT_EQ(model.TakeDropped()[static_cast<size_t>(Dropped::kAgents)], 0u);
}

TEST(JobModelLimitsTest, CountsAgentsBeyondTheLimit) {
  JobModel model("job");
  for (size_t i = 0; i < limits::kAgentsOfJob; ++i) {
    const std::string host = "node-" + std::to_string(i);
    ASSERT_GE(model.AddAgent(host + "/1", host), 0) << i;
  }
  EXPECT_EQ(model.AddAgent("one-too-many", "node"), -1);
  EXPECT_EQ(model.AddAgent("node-7/1", "node-7"), 7) << "it is known";
  EXPECT_EQ(CountDropped(&model, Dropped::kAgents), 1u);
}

TEST(JobModelLimitsTest, CountsIdsOfGrownCommunicatorsBeyondTheLimit) {
  JobModel model("job");
  const int32_t process = model.AddProcess("node", 100, 1);
  CommProgress progress = Claim(kComm, 0, 1);
  for (uint64_t id = 1; id <= limits::kGrownIdsOfJob + 3; ++id) {
    progress.grown.push_back({1'000'000 + id, 2'000'000 + id});
  }
  model.SetProgress(process, progress, kStart);
  EXPECT_EQ(CountDropped(&model, Dropped::kIds), 3u);
  model.SetProgress(process, Claim(1'000'001, 0, 1), kStart);
  EXPECT_EQ(model.state().communicators.count(2'000'001), 1u) << "it had room";
}

// Each peer in turn, from the last one down, and one more send to the first of them.
TEST(JobModelLimitsTest, CountsSendsToPeersBeyondTheLimit) {
  JobModel model("job");
  const int32_t process = model.AddProcess("node", 100, 1);
  CommProgress progress = Claim(kComm, 0);
  const auto peers = static_cast<int32_t>(limits::kPeersOfMember) + 2;
  for (int32_t peer = peers; peer > 0; --peer) {
    CallRecord record;
    record.index = static_cast<uint64_t>(peers - peer);
    record.args.op = Op::kSend;
    record.args.peer = peer;
    record.entered_ns = kStart;
    progress.records.push_back(record);
  }
  CallRecord again = progress.records.front();
  again.index = static_cast<uint64_t>(peers);
  progress.records.push_back(again);
  model.SetProgress(process, progress, kStart);
  const Member& member = model.state().communicators.at(kComm).members.at(0);
  ASSERT_EQ(member.traffic.size(), limits::kPeersOfMember);
  EXPECT_EQ(member.traffic.front().peer, 3);
  EXPECT_EQ(member.traffic.back().peer, peers);
  EXPECT_EQ(member.traffic.front().sends, 1u);
  EXPECT_EQ(member.traffic.back().sends, 2u);
  EXPECT_EQ(CountDropped(&model, Dropped::kPeers), 2u);
}

TEST(JobModelLimitsTest, TheRecordsOfAllJobsShareOneBudget) {
  constexpr size_t kBudget = size_t{8} << 20;
  const auto fleet = std::make_shared<FleetBudget>(kBudget);
  std::vector<JobModel> models;
  const size_t before = HeapBytes();
  for (int job = 0; job < 50; ++job) {
    models.emplace_back(JobKey("job"), fleet);
    AddCalls(&models.back(), 16, 2000);
    for (JobModel& model : models) model.TrimRecords();
  }
  // Members and processes take some memory too.
  EXPECT_LT(HeapBytes() - before, kBudget * 3 / 2);
  for (const JobModel& model : models) {
    EXPECT_GE(model.state().communicators.at(1).members.at(0).records.size(), 16u);
  }
}

TEST(JobModelLimitsTest, OneJobAloneHasTheWholeBudget) {
  constexpr int kRanks = 6000;
  constexpr size_t kBudget = kRanks * JobModel::kMostRecords * JobModel::kBytesOfRecord;
  JobModel model(JobKey("job"), std::make_shared<FleetBudget>(kBudget));
  AddCalls(&model, kRanks, 1);
  AddCalls(&model, 2, 1000);
  model.TrimRecords();
  EXPECT_EQ(model.state().communicators.at(1).members.at(1).records.size(), 1000u);
}

TEST(JobModelLimitsTest, ASmallJobBesideAHugeOneKeepsItsHistory) {
  const auto fleet = std::make_shared<FleetBudget>(size_t{32} << 20);
  JobModel small(JobKey("small"), fleet), huge(JobKey("huge"), fleet);
  AddCalls(&huge, 20'000, 20);
  AddCalls(&small, 8, 2000);
  huge.TrimRecords();
  small.TrimRecords();
  EXPECT_GE(small.state().communicators.at(1).members.at(0).records.size(), 1000u);
  EXPECT_FALSE(huge.state().communicators.at(1).keeps_records);
}

TEST(JobModelLimitsTest, TheRecordsOfAUserWithManyJobsTakeNothingFromAnother) {
  const auto fleet = std::make_shared<FleetBudget>(size_t{32} << 20);
  JobModel small(JobKey("small"), fleet, "ann");
  std::vector<JobModel> many;
  for (int i = 0; i < 200; ++i) many.emplace_back(JobKey("one of many"), fleet, "greedy");
  AddCalls(&small, 8, 2000);
  small.TrimRecords();
  EXPECT_GE(small.state().communicators.at(1).members.at(0).records.size(), 1000u);
}

}  // namespace
}  // namespace rollcall
