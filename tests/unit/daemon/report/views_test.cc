// SPDX-License-Identifier: Apache-2.0
// The views of the page and `rollcall watch`, as pure functions of a job's state.
#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <vector>

#include "daemon/jobs/call_rate.h"
#include "daemon/model/progress.h"
#include "daemon/report/calls_view.h"
#include "daemon/report/communicator_view.h"
#include "daemon/report/job_view.h"
#include "daemon/report/processes_view.h"
#include "daemon/report/public_ranks.h"
#include "daemon/report/rank_state.h"
#include "daemon/report/status_view.h"
#include "job_builder.h"

namespace rollcall {
namespace {

v1::JobView Maps(const JobState& job) {
  v1::JobView view;
  FillRankMaps(job, &view);
  return view;
}

TEST(RankMapsTest, ShowWaitingAndLaggingRanks) {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 2}, At(10));
  const v1::JobView view = Maps(job.state);
  ASSERT_EQ(view.maps_size(), 1);
  EXPECT_EQ(view.maps(0).name(), "dp");
  EXPECT_EQ(view.maps(0).states(), "www1");
}

TEST(RankMapsTest, ShowHowFarBehindInPowersOfTwo) {
  EXPECT_EQ(LagCharacter(1), '1');
  EXPECT_EQ(LagCharacter(3), '2');
  EXPECT_EQ(LagCharacter(4), '3');
  EXPECT_EQ(LagCharacter(1 << 8), '9');
  EXPECT_EQ(LagCharacter(uint64_t{1} << 60), '9');
}

TEST(RankMapsTest, ShowDeadExitedSilentAndNewMembers) {
  JobBuilder job(6);
  job.Finish(3);
  job.process(0).liveness = Liveness::kDied;
  job.process(1).liveness = Liveness::kExited;
  job.process(2).liveness = Liveness::kSilent;
  job.member(3).state = MemberState::kInitializing;
  job.member(4).state = MemberState::kDestroyed;
  EXPECT_EQ(Maps(job.state).maps(0).states(), "xesid.");
}

TEST(RankMapsTest, PutCommunicatorsOfOneKindTogether) {
  JobBuilder job(4);
  job.AddCommunicator(11, "tp_0", {0, 1});
  job.AddCommunicator(12, "tp_1", {2, 3});
  job.AddCommunicator(13, "", {0, 2});
  job.AddCommunicator(14, "", {1, 3});
  job.AddCommunicator(15, "", {1, 2});  // both ranks are in one of this size already
  const v1::JobView view = Maps(job.state);
  std::map<std::string, std::string> states;
  for (const v1::RankMap& map : view.maps()) states[map.name()] = map.states();
  EXPECT_EQ(states["dp"], "....");
  EXPECT_EQ(states["tp"], "....");
  EXPECT_EQ(states["unnamed, of 2 ranks"], "....");
  EXPECT_EQ(states["unnamed, of 2 ranks, set 2"], "-..-");
}

TEST(RankMapsTest, MarkMissingRanksInACommunicatorOfAll) {
  JobBuilder job(4);
  job.comm().members.erase(2);
  EXPECT_EQ(Maps(job.state).maps(0).states(), "..?.");
}

TEST(RankMapsTest, NameHostsInTheOrderOfRanks) {
  JobBuilder job(4);
  for (int rank = 0; rank < 4; ++rank) {
    job.process(rank).host = rank < 3 ? "a" : "b";
  }
  const v1::JobView view = Maps(job.state);
  ASSERT_EQ(view.hosts_size(), 2);
  EXPECT_EQ(view.hosts(0).ranks(), 3);
  EXPECT_EQ(view.hosts(1).first_rank(), 3);
}

v1::CommunicatorView CommunicatorOf(const JobState& job, const std::string& id, int limit = 0,
                                    int offset = 0) {
  v1::CommunicatorRequest request;
  request.set_id(id);
  request.set_limit(limit);
  request.set_offset(offset);
  v1::CommunicatorView view;
  EXPECT_TRUE(FillCommunicatorView(job, At(40), request, &view));
  return view;
}

TEST(CommunicatorViewTest, ListsTheMembersThatAreBehindFirst) {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 3}, At(10));
  job.process(2).host = "node-17";
  const v1::CommunicatorView view = CommunicatorOf(job.state, absl::StrCat(absl::Hex(kDp)));
  EXPECT_EQ(view.status().name(), "dp");
  EXPECT_EQ(view.missing_ranks(), "");
  ASSERT_EQ(view.members_size(), 4);
  EXPECT_EQ(view.members(0).rank(), 2);
  EXPECT_EQ(view.members(0).host(), "node-17");
  EXPECT_EQ(view.members(0).calls().state(), "1");
  EXPECT_EQ(view.members(0).waited_seconds(), 0);
  EXPECT_EQ(view.members(1).rank(), 0);
  EXPECT_EQ(view.members(1).calls().state(), "w");
  EXPECT_EQ(view.members(1).waited_seconds(), 30);
  ASSERT_EQ(view.members(1).calls().calls_size(), 1);
  EXPECT_TRUE(view.members(1).calls().calls(0).waits());
}

TEST(CommunicatorViewTest, NamesRanksByTheirNumbersInTheJob) {
  JobBuilder job(4);
  job.AddCommunicator(11, "tp", {2, 3});
  const v1::CommunicatorView view = CommunicatorOf(job.state, "b");
  EXPECT_EQ(view.members(0).rank(), 2);
  EXPECT_EQ(view.members(0).calls().rank_in_communicator(), 0);
}

TEST(CommunicatorViewTest, TellsWhichOfItsRanksNoAgentHasReported) {
  JobBuilder job(4);
  job.comm().members.erase(2);
  const v1::CommunicatorView view = CommunicatorOf(job.state, absl::StrCat(absl::Hex(kDp)));
  EXPECT_EQ(view.total(), 3);
  EXPECT_EQ(view.missing_ranks(), "2");
}

TEST(CommunicatorViewTest, HasPages) {
  JobBuilder job(4);
  const std::string id = absl::StrCat(absl::Hex(kDp));
  const v1::CommunicatorView view = CommunicatorOf(job.state, id, 2, 3);
  EXPECT_EQ(view.total(), 4);
  ASSERT_EQ(view.members_size(), 1);
  EXPECT_EQ(view.members(0).rank(), 3);
}

TEST(CommunicatorViewTest, DoesNotFindWhatIsNotAnId) {
  JobBuilder job(2);
  for (const char* id : {"", "dp", "ffff", "123456789012345678901234"}) {
    v1::CommunicatorRequest request;
    request.set_id(id);
    v1::CommunicatorView view;
    EXPECT_FALSE(FillCommunicatorView(job.state, At(40), request, &view)) << id;
  }
}

TEST(PublicRanksTest, CountProcessesWithoutRanksInTheEnvironment) {
  JobBuilder job(3);
  for (int rank = 0; rank < 3; ++rank) job.process(rank).global_rank = -1;
  const PublicRanks ranks(job.state);
  EXPECT_EQ(ranks.count(), 3);
  EXPECT_EQ(ranks.FindRank(2), 2);
  EXPECT_EQ(ranks.FindProcess(3), -1);
  EXPECT_EQ(ranks.FindRank(-1), -1);
}

TEST(PublicRanksTest, ShowTheNewerProcessOfARankThatWasStartedAgain) {
  JobBuilder job(2);
  Process again = job.process(1);
  again.pid = 99;
  job.state.processes.push_back(again);
  EXPECT_EQ(PublicRanks(job.state).FindProcess(1), 2);
}

TEST(PublicRanksTest, IgnoreDamagedNumbers) {
  JobBuilder job(2);
  job.process(0).global_rank = 2'000'000'000;
  job.process(1).world_size = 2'000'000'000;
  EXPECT_LE(PublicRanks(job.state).count(), 1 << 18);
}

TEST(JobViewTest, AClaimedNumberOfRanksMakesOneMap) {
  JobBuilder job(2);
  for (uint64_t id = 1; id <= 32; ++id) {
    job.AddCommunicator(kDp + id, "comm " + std::string(id, 'x'), {0, 1});
  }
  job.process(1).global_rank = kMaxRanks - 1;
  v1::JobView view;
  FillRankMaps(job.state, &view);
  EXPECT_EQ(view.maps_size(), 1);
  EXPECT_LT(view.ByteSizeLong(), 300'000u);
}

TEST(CallsViewTest, ShowsTheWaitingCallAndWhatTheGpuHasDone) {
  JobBuilder job(2);
  job.Finish(3);
  job.Enter({0}, At(10));
  v1::CallsResponse response;
  FillCalls(job.state, {1, 0, 0, 77}, 2, &response);
  ASSERT_EQ(response.ranks_size(), 2);
  EXPECT_EQ(response.ranks(0).rank(), 0);
  const auto& calls = response.ranks(0).communicators(0).calls();
  ASSERT_EQ(calls.size(), 2);
  EXPECT_EQ(calls[0].gpu(), "finished");
  EXPECT_FALSE(calls[0].waits());
  EXPECT_EQ(calls[1].gpu(), "started");
  EXPECT_TRUE(calls[1].waits());
  EXPECT_EQ(calls[1].call().operation(), "AllReduce");
  EXPECT_EQ(calls[1].call().position(), 3);
}

TEST(CallsViewTest, ShowsTheStepThatARankRepeats) {
  CallArgs broadcast = AllReduce();
  broadcast.op = Op::kBroadcast;
  JobBuilder job(1);
  job.Finish({0}, 7, AllReduce(), At(0));  // a warm-up
  for (int step = 0; step < 20; ++step) {
    job.Finish({0}, 1, broadcast, At(1 + step));
    job.Finish({0}, 2, AllReduce(), At(1.5 + step));
  }
  v1::CallsResponse response;
  FillCalls(job.state, {0}, kMostCalls, &response);
  const v1::CommunicatorCalls& comm = response.ranks(0).communicators(0);
  EXPECT_EQ(comm.step().calls(), 3);
  EXPECT_NEAR(comm.step().seconds(), 1, 0.01);
  response.Clear();
  FillCalls(job.state, {0}, 5, &response);
  EXPECT_FALSE(response.ranks(0).communicators(0).has_step()) << "too few calls are shown";
}

TEST(CallsViewTest, EqualCallsAreNotAStep) {
  JobBuilder job(1);
  job.Finish(60);
  v1::CallsResponse response;
  FillCalls(job.state, {0}, kMostCalls, &response);
  EXPECT_FALSE(response.ranks(0).communicators(0).has_step());
}

// The bars of the timeline end with it.
TEST(CallsViewTest, ShowsWhenTheProcessOfARankEnded) {
  JobBuilder job(2);
  job.Finish(3);
  job.Enter({0}, At(10));
  job.Die(1, At(12), SIGTERM);
  v1::CallsResponse response;
  FillCalls(job.state, {0, 1}, 2, &response);
  ASSERT_EQ(response.ranks_size(), 2);
  EXPECT_EQ(response.ranks(0).communicators(0).ended_seconds(), 0);
  EXPECT_EQ(response.ranks(1).communicators(0).ended_seconds(), static_cast<double>(At(12)) / 1e9);
}

TEST(StatusViewTest, CountsWhatEndedInGoodOrder) {
  JobBuilder job(2);
  job.Finish(3);
  job.Die(0, At(12), SIGTERM);
  job.Exit(1, At(12));
  v1::JobStatus status;
  FillJobStatus(job.state, At(13), false, &status);
  EXPECT_EQ(status.state(), "ended");
  EXPECT_EQ(status.processes_died(), 1);
  EXPECT_EQ(status.processes_exited(), 1);
}

TEST(CallsViewTest, AnAnswerHasAtMostAsManyCallsAsTheDaemonKeeps) {
  JobBuilder job(1);
  job.Finish(kMostCalls + 200);  // a list may be half as long again before the model shortens it
  v1::CallsResponse response;
  FillCalls(job.state, {0}, INT32_MAX, &response);
  ASSERT_EQ(response.ranks_size(), 1);
  const auto& calls = response.ranks(0).communicators(0).calls();
  ASSERT_EQ(calls.size(), kMostCalls);
  EXPECT_EQ(calls[0].call().position(), 200) << "the newest calls";
}

TEST(CallsViewTest, SharesTheRoomOfAnAnswerEvenly) {
  constexpr int kRanks = 2, kCommunicators = 100, kCalls = 500;
  JobBuilder job(kRanks);
  for (uint64_t id = 1; id < kCommunicators; ++id) job.AddCommunicator(id, "", {0, 1});
  for (auto& [id, comm] : job.state.communicators) {
    job.On(id);
    job.Finish(kCalls);
  }
  v1::CallsResponse response;
  FillCalls(job.state, {0, 1}, kCalls, &response);
  ASSERT_EQ(response.ranks_size(), kRanks);
  int all = 0;
  for (const v1::RankCalls& rank : response.ranks()) {
    ASSERT_EQ(rank.communicators_size(), kCommunicators);
    for (const v1::CommunicatorCalls& comm : rank.communicators()) {
      EXPECT_EQ(comm.calls_size(), kMostCallsOfAnswer / (kRanks * kCommunicators));
      all += comm.calls_size();
    }
  }
  EXPECT_LE(all, kMostCallsOfAnswer);
}

TEST(ProcessesViewTest, PagesByRank) {
  JobBuilder job(5);
  job.process(1).blocked = {{1, Op::kcudaStreamSynchronize, 0, At(4)}};
  v1::ProcessesRequest request;
  request.set_offset(1);
  request.set_limit(2);
  v1::ProcessesResponse response;
  FillProcesses(job.state, At(10), request, &response);
  EXPECT_EQ(response.total(), 5);
  ASSERT_EQ(response.processes_size(), 2);
  EXPECT_EQ(response.processes(0).rank(), 1);
  EXPECT_EQ(response.processes(0).doing(), "cudaStreamSynchronize");
  EXPECT_DOUBLE_EQ(response.processes(0).doing_seconds(), 6);
  EXPECT_EQ(response.processes(0).device(), 1);
}

TEST(JobStatusTest, NamesLaggingRanks) {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 2}, At(10));
  v1::JobStatus status;
  FillJobStatus(job.state, At(15), true, &status);
  EXPECT_EQ(status.ranks(), 4);
  const v1::CommunicatorStatus& comm = status.communicators(0);
  ASSERT_EQ(comm.laggards_size(), 1);
  EXPECT_EQ(comm.laggards(0), 3);
  EXPECT_EQ(comm.waiting(), 3);
  EXPECT_DOUBLE_EQ(comm.waited_seconds(), 5);
}

TEST(JobStatusTest, SaysHowOftenTheProcessesCreatedTheirWorldAgain) {
  JobBuilder job(4);
  const auto warnings = [&job](int32_t restarts) {
    job.state.world_restarts = restarts;
    v1::JobStatus status;
    FillJobStatus(job.state, At(15), false, &status);
    return std::vector<std::string>(status.warnings().begin(), status.warnings().end());
  };
  EXPECT_EQ(warnings(0), std::vector<std::string>());
  EXPECT_EQ(warnings(1),
            std::vector<std::string>{
                "the processes have created their world communicator again 1 time after an abort"});
  EXPECT_EQ(
      warnings(2),
      std::vector<std::string>{
          "the processes have created their world communicator again 2 times after an abort"});
}

TEST(JobStatusTest, KeepsTheCommunicatorsThatWaitWhereThereAreMany) {
  JobBuilder job(4);
  for (uint64_t id = 100; id < 150; ++id) job.AddCommunicator(id, "", {0, 1});
  job.Finish({0, 1}, 1);
  job.Enter({0}, At(3));
  v1::JobStatus status;
  FillJobStatus(job.state, At(15), true, &status);
  KeepWorstCommunicators(3, &status);
  EXPECT_EQ(status.communicators_total(), 51);
  ASSERT_EQ(status.communicators_size(), 3);
  EXPECT_EQ(status.communicators(0).id(), "0000000000000095");
}

TEST(CallRateTest, IsOfAnAverageRank) {
  CallRate rate;
  EXPECT_TRUE(rate.IsDue(At(0)));
  rate.Count(At(0), 1000, 4);
  EXPECT_EQ(rate.now(), 0);
  EXPECT_FALSE(rate.IsDue(At(1)));
  rate.Count(At(2), 1800, 4);
  EXPECT_DOUBLE_EQ(rate.now(), 100);
  rate.Count(At(4), 900, 4);  // the job has forgotten a rank with its calls
  EXPECT_EQ(rate.now(), 0);
  for (int i = 0; i < 1000; ++i) rate.Count(At(6 + 2 * i), 1000, 4);
  EXPECT_EQ(rate.history().size(), CallRate::kKept);
}

}  // namespace
}  // namespace rollcall
