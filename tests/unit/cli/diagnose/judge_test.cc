// SPDX-License-Identifier: Apache-2.0
// What looks at their hosts report of jobs.
#include "daemon/looks/judge.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/diagnose/say.h"
#include "cli/diagnose/say_logs.h"
#include "look_builder.h"

namespace rollcall {
namespace {

using Outcome = LookedAtJob::Outcome;

const SeenStack kInGloo = {
    {{"c10d::Work::wait", ""},
     {"all_reduce", "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py", 9},
     {"train", "/x/train.py", 20}}};
const SeenStack kInValidate = {
    {{"pthread_mutex_lock", ""}, {"validate", "/x/train.py", 50}, {"train", "/x/train.py", 30}}};
const SeenStack kAsleep = {
    {{"clock_nanosleep", ""}, {"validate", "/x/train.py", 50}, {"train", "/x/train.py", 30}}};

std::vector<SeenStack> Always(const SeenStack& stack) { return {stack, stack, stack}; }

std::vector<SeenStack> Spinning(SeenStack stack) {
  std::vector<SeenStack> stacks;
  for (int i = 0; i < 3; ++i) {
    stacks.push_back(stack);
    stack.cpu_seconds += 2.5;
  }
  return stacks;
}

LookedAtJob JudgeOnly(const std::vector<v1::HostLook>& looks) {
  std::vector<LookedAtJob> jobs = JudgeLooks(looks);
  EXPECT_EQ(jobs.size(), 1u);
  return jobs.empty() ? LookedAtJob() : std::move(jobs.front());
}

std::vector<int32_t> CulpritsOf(const LookedAtJob& job) {
  std::vector<int32_t> ranks;
  if (job.incident.verdicts().empty()) return ranks;
  for (const v1::Culprit& culprit : job.incident.verdicts(0).culprits()) {
    ranks.push_back(culprit.rank());
  }
  return ranks;
}

using Culprits = std::vector<int32_t>;

TEST(JudgeLooksTest, BlamesTheRankThatIsElsewhere) {
  LookBuilder host;
  for (const int rank : {0, 1, 3}) host.Add(rank, Always(kInGloo), 4);
  host.Add(2, Always(kInValidate), 4);
  const LookedAtJob job = JudgeOnly({host.look});
  EXPECT_EQ(job.outcome, Outcome::kHangs);
  EXPECT_EQ(CulpritsOf(job), Culprits({2}));
  const v1::Verdict& verdict = job.incident.verdicts(0);
  EXPECT_EQ(verdict.cause(), "standstill");
  EXPECT_NE(verdict.certainty(), "certain");
  EXPECT_NE(verdict.summary().find("train.py:50"), std::string::npos) << verdict.summary();
  EXPECT_EQ(job.incident.stacks(0).rank(), 2);
  EXPECT_TRUE(job.incident.stacks(0).culprit());
}

TEST(JudgeLooksTest, AHangIsConfirmedOnlyIfItIsMoreThanPossible) {
  LookBuilder hangs, rests;
  for (LookBuilder* host : {&hangs, &rests}) {
    for (const int rank : {0, 1, 3}) host->Add(rank, Always(kInGloo), 4);
    host->Add(2, Always(host == &hangs ? kInValidate : kAsleep), 4);
  }
  EXPECT_EQ(JudgeOnly({hangs.look}).incident.state(), "confirmed");
  const LookedAtJob job = JudgeOnly({rests.look});
  EXPECT_EQ(job.incident.verdicts(0).certainty(), "possible");
  EXPECT_EQ(job.incident.state(), "suspected");
  EXPECT_FALSE(job.incident.has_confirmed_at());
  EXPECT_EQ(job.outcome, Outcome::kCannotTell);
  EXPECT_EQ(ExitCodeOf({job}, {rests.look}), 2);
  const std::string text = SayJobs({job}, {rests.look}, {});
  EXPECT_NE(text.find("Cannot tell whether it hangs: "), std::string::npos) << text;
  EXPECT_NE(text.find("rank 2 "), std::string::npos) << text;
}

// Three samples of a thread that wakes so often from one to the next.
std::vector<SeenStack> Waking(SeenStack stack, uint64_t often) {
  std::vector<SeenStack> stacks;
  for (uint64_t i = 0; i < 3; ++i) {
    stack.switches = 100 + i * often;
    stacks.push_back(stack);
  }
  return stacks;
}

const SeenStack kLooksForAFile = {
    {{"clock_nanosleep", ""}, {"find_index", "/x/train.py", 60}, {"train", "/x/train.py", 31}}};

TEST(JudgeLooksTest, RanksThatAllLookAgainAndAgainMayHang) {
  LookBuilder host;
  for (const int rank : {0, 1, 2}) host.Add(rank, Waking(kAsleep, 25), 3);
  const LookedAtJob job = JudgeOnly({host.look});
  EXPECT_EQ(job.outcome, Outcome::kCannotTell);
  ASSERT_EQ(job.incident.verdicts_size(), 1);
  EXPECT_EQ(job.incident.verdicts(0).certainty(), "possible");
  EXPECT_EQ(CulpritsOf(job), Culprits());
  EXPECT_NE(job.incident.verdicts(0).summary().find("train.py:50"), std::string::npos)
      << job.incident.verdicts(0).summary();
}

TEST(JudgeLooksTest, OfRanksThatAllLookAgainAndAgainTheOneElsewhereIsNamed) {
  LookBuilder host;
  for (const int rank : {0, 1}) host.Add(rank, Waking(kAsleep, 25), 3);
  host.Add(2, Waking(kLooksForAFile, 25), 3);
  const LookedAtJob job = JudgeOnly({host.look});
  EXPECT_EQ(job.outcome, Outcome::kCannotTell);
  EXPECT_EQ(CulpritsOf(job), Culprits({2}));
}

TEST(JudgeLooksTest, RanksThatSleepOnceAreLeftAlone) {
  for (const uint64_t often : {0, 1, 4}) {  // 4: a step in each second
    LookBuilder host;
    for (const int rank : {0, 1, 2}) host.Add(rank, Waking(kAsleep, often), 3);
    const LookedAtJob job = JudgeOnly({host.look});
    EXPECT_EQ(job.outcome, Outcome::kGoesOn) << often;
    EXPECT_TRUE(job.incident.verdicts().empty());
  }
}

const char kGlooWait[] = "gloo::transport::tcp::UnboundBuffer::waitRecv(int*, std::chrono::ms)";

// Adds the thread that makes the calls of gloo, inside one of them.
void AddCallOfGloo(v1::ProcessLook* rank) {
  for (v1::StackSample& sample : *rank->mutable_samples()) {
    v1::ThreadStack* thread = sample.mutable_stack()->add_threads();
    thread->set_tid(sample.stack().pid() + 1000);
    thread->set_state("S");
    for (const char* function : {kGlooWait, "gloo::allreduce(gloo::AllreduceOptions const&)",
                                 "c10d::ProcessGroupGloo::runLoop(int)"}) {
      v1::Frame* frame = thread->add_frames();
      frame->set_function(function);
      frame->set_module("/usr/lib/libtorch_cpu.so");
    }
  }
}

TEST(JudgeLooksTest, WhoAsksWhetherACallOfGlooIsDoneWaitsInIt) {
  LookBuilder host;
  host.Add(0, Always(kInValidate), 3);
  for (const int rank : {1, 2}) AddCallOfGloo(host.Add(rank, Waking(kAsleep, 12), 3));
  const LookedAtJob job = JudgeOnly({host.look});
  EXPECT_EQ(CulpritsOf(job), Culprits({0})) << job.why;
  EXPECT_EQ(job.outcome, Outcome::kHangs);
}

TEST(JudgeLooksTest, RanksThatAllReceiveWaitForEachOther) {
  const SeenStack receives = {
      {{kGlooWait, ""},
       {"c10d::ProcessGroupGloo::RecvWork::wait(std::chrono::duration)", ""},
       {"recv", "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py", 9},
       {"train", "/x/train.py", 20}}};
  LookBuilder host;
  for (const int rank : {0, 1}) host.Add(rank, Always(receives), 2);
  EXPECT_EQ(CulpritsOf(JudgeOnly({host.look})), Culprits({0, 1}));
}

// gloo breaks the connections of a rank that ends: its others would know.
TEST(JudgeLooksTest, WhoWaitsInGlooDoesNotWaitForAnEndedRank) {
  LookBuilder host;
  AddCallOfGloo(host.Add(0, Always(kInGloo), 3));
  host.Add(1, Always(kInValidate), 3);
  v1::ProcessLook* ended = host.Add(-1, {});
  ended->set_found_by(kFoundAsZombie);
  ended->mutable_process()->mutable_evidence()->set_liveness(v1::Evidence::ENDED);
  EXPECT_EQ(CulpritsOf(JudgeOnly({host.look})), Culprits({1}));
}

TEST(ConcludeTest, AServerThatMayBeIdleDoesNotHang) {
  LookedAtJob job;
  v1::Verdict* verdict = job.incident.add_verdicts();
  verdict->set_certainty("likely");
  Conclude(kSecond, &job);
  EXPECT_EQ(job.outcome, Outcome::kHangs);
  EXPECT_TRUE(job.incident.has_confirmed_at());
  verdict->set_certainty("possible");
  verdict->set_idle(true);
  Conclude(kSecond, &job);
  EXPECT_EQ(job.outcome, Outcome::kCannotTell);
  EXPECT_EQ(job.incident.state(), "suspected");
  EXPECT_FALSE(job.incident.has_confirmed_at());
  EXPECT_NE(job.why.find("idle"), std::string::npos) << job.why;
}

TEST(JudgeLooksTest, SaysNothingOfAJobOfWhichOneRankMoves) {
  LookBuilder host;
  host.Add(0, Always(kInGloo), 3);
  host.Add(1, Always(kInGloo), 3);
  SeenStack works = kInValidate;
  works.cpu_seconds += 3;
  host.Add(2, {kInValidate, kInValidate, works}, 3);
  const LookedAtJob job = JudgeOnly({host.look});
  EXPECT_EQ(job.outcome, Outcome::kGoesOn);
  EXPECT_NE(job.why.find("rank 2 moves"), std::string::npos) << job.why;
  EXPECT_TRUE(job.incident.verdicts().empty());
}

// The kernel did not answer in time, for example.
TEST(JudgeLooksTest, ASampleWithoutFramesIsNoMotion) {
  const SeenStack nothing = {{}};
  LookBuilder once, twice;
  for (LookBuilder* host : {&once, &twice}) {
    for (const int rank : {0, 1}) host->Add(rank, Always(kInGloo), 3);
  }
  once.Add(2, {kInValidate, nothing, kInValidate}, 3);
  EXPECT_EQ(CulpritsOf(JudgeOnly({once.look})), Culprits({2}));
  twice.Add(2, {nothing, nothing, kInValidate}, 3);
  const LookedAtJob job = JudgeOnly({twice.look});
  EXPECT_EQ(job.outcome, Outcome::kCannotTell);
  EXPECT_EQ(job.why, "the stacks of rank 2 could not be taken");
}

// For which no stack is needed.
TEST(JudgeLooksTest, ARankThatHasDiedIsToldThoughNoStackWasTaken) {
  LookBuilder host;
  host.Add(0, {}, 3);
  host.Add(1, {}, 3);
  v1::ProcessLook* dead = host.Add(-1, {});
  dead->set_found_by(kFoundAsZombie);
  dead->mutable_process()->mutable_evidence()->set_liveness(v1::Evidence::DIED);
  dead->mutable_process()->mutable_evidence()->set_exit_signal(9);
  const LookedAtJob job = JudgeOnly({host.look});
  EXPECT_EQ(job.outcome, Outcome::kCannotTell);
  EXPECT_EQ(job.why,
            "the stacks of ranks 0-1 could not be taken; rank 2 died (killed by signal 9)");
}

TEST(JudgeLooksTest, JoinsTheRanksOfTwoHosts) {
  LookBuilder one("node-1"), two("node-2");
  for (LookBuilder* host : {&one, &two}) {
    for (int i = 0; i < 2; ++i) {
      const int rank = host == &one ? i : i + 2;
      v1::ProcessLook* process = host->Add(rank, Always(rank == 3 ? kInValidate : kInGloo), 4);
      process->clear_marks();
      LookBuilder::Mark(process, "rendezvous", "node-1:29500", false);
    }
  }
  two.look.set_begun_ns(two.look.begun_ns() + 40 * kSecond);  // its clock is another one
  two.look.set_ended_ns(two.look.ended_ns() + 40 * kSecond);
  for (v1::ProcessLook& process : *two.look.mutable_processes()) {
    for (v1::StackSample& sample : *process.mutable_samples()) {
      sample.set_taken_ns(sample.taken_ns() + 40 * kSecond);
    }
  }
  const LookedAtJob job = JudgeOnly({one.look, two.look});
  EXPECT_EQ(CulpritsOf(job), Culprits({3}));
  EXPECT_EQ(job.incident.verdicts(0).culprits(0).host(), "node-2");
  EXPECT_EQ(job.hosts.size(), 2u);
}

// It may be the culprit, whose memory is locked.
TEST(JudgeLooksTest, ARankThatCouldNotBeReadIsNotOneWithoutAProcess) {
  LookBuilder host;
  host.Add(0, Always(kInGloo), 3);
  host.Add(2, Always(kInGloo), 3);
  host.look.set_is_whole(false);
  const LookedAtJob job = JudgeOnly({host.look});
  EXPECT_EQ(CulpritsOf(job), Culprits({}));
}

// A step of 20 s: it moved between the first look and the second.
TEST(JudgeLooksTest, ALongLookAsksForALongWait) {
  LookBuilder host;
  SeenStack before = kInGloo;
  before.frames.back().line = 19;
  host.Add(0, {before, kInGloo, kInGloo}, 2);
  host.Add(1, {before, kInValidate, kInValidate}, 2);
  for (v1::ProcessLook& process : *host.look.mutable_processes()) {
    for (int i = 0; i < 3; ++i) {
      process.mutable_samples(i)->set_taken_ns(kLookBegunNs + kSecond + i * 15 * kSecond);
    }
  }
  host.look.set_ended_ns(kLookBegunNs + 32 * kSecond);
  EXPECT_EQ(JudgeOnly({host.look}).outcome, Outcome::kGoesOn);
}

TEST(JudgeLooksTest, SaysThatRanksOnOtherHostsAreNotSeen) {
  LookBuilder host;
  v1::ProcessLook* process = host.Add(0, Always(kInGloo), 16);
  process->clear_marks();
  LookBuilder::Mark(process, "rendezvous", "node-1:29500", false);
  const LookedAtJob job = JudgeOnly({host.look});
  EXPECT_EQ(job.outcome, LookedAtJob::Outcome::kCannotTell);
  EXPECT_NE(job.why.find("1 of 16 ranks"), std::string::npos) << job.why;
}

TEST(JudgeLooksTest, BlamesARankWithoutAProcess) {
  LookBuilder host;
  host.Add(0, Always(kInGloo), 3);
  host.Add(2, Always(kInGloo), 3);
  const LookedAtJob job = JudgeOnly({host.look});
  EXPECT_EQ(CulpritsOf(job), Culprits({1}));
  EXPECT_NE(job.incident.verdicts(0).summary().find("has no process"), std::string::npos)
      << job.incident.verdicts(0).summary();
}

TEST(JudgeLooksTest, NoRankIsMissingWhereTheRanksDisagreeOnTheSizeOfTheWorld) {
  LookBuilder host;
  host.Add(0, Always(kInGloo), 3);
  host.Add(1, Always(kInGloo), 4);
  host.Add(2, Always(kInValidate), 3);
  EXPECT_EQ(CulpritsOf(JudgeOnly({host.look})), Culprits({2}));
}

TEST(JudgeLooksTest, GivesTheMissingRankToAnEndedSibling) {
  LookBuilder host;
  host.Add(0, Always(kInGloo), 3);
  host.Add(1, Always(kInGloo), 3);
  v1::ProcessLook* ended = host.Add(-1, {});
  ended->set_found_by("zombie");
  ended->mutable_process()->mutable_evidence()->set_liveness(v1::Evidence::DIED);
  ended->mutable_process()->mutable_evidence()->set_exit_signal(9);
  const LookedAtJob job = JudgeOnly({host.look});
  EXPECT_EQ(CulpritsOf(job), Culprits({2}));
  EXPECT_NE(job.incident.verdicts(0).summary().find("killed by signal 9"), std::string::npos)
      << job.incident.verdicts(0).summary();
}

TEST(JudgeLooksTest, BlamesAStoppedRank) {
  LookBuilder host;
  host.Add(0, Always(kInGloo), 3);
  host.Add(1, Always(kInGloo), 3);
  host.Add(2, Always(kInValidate), 3)->mutable_process()->mutable_evidence()->set_state("T");
  const LookedAtJob job = JudgeOnly({host.look});
  EXPECT_EQ(CulpritsOf(job), Culprits({2}));
  EXPECT_NE(job.incident.verdicts(0).summary().find("stopped by a signal"), std::string::npos)
      << job.incident.verdicts(0).summary();
}

TEST(JudgeLooksTest, IsUnsureOfAJobUnderADebugger) {
  LookBuilder host;
  host.Add(0, Always(kInGloo), 2);
  host.Add(1, Always(kInValidate), 2)->mutable_process()->mutable_evidence()->set_traced(true);
  const LookedAtJob job = JudgeOnly({host.look});
  EXPECT_EQ(job.outcome, Outcome::kCannotTell);
  EXPECT_NE(job.why.find("rank 1 is in a debugger"), std::string::npos) << job.why;
}

TEST(JudgeLooksTest, CannotTellWithoutStacks) {
  LookBuilder host;
  host.Add(0, Always(kInGloo), 2);
  host.Add(1, {}, 2)->set_unseen("the kernel refused to trace it");
  const LookedAtJob job = JudgeOnly({host.look});
  EXPECT_EQ(job.outcome, Outcome::kCannotTell);
  ASSERT_EQ(job.unseen.size(), 1u);
  EXPECT_EQ(job.unseen[0], "rank 1: the kernel refused to trace it");
}

TEST(JudgeLooksTest, AProcessOfAnEarlierRunIsNamedAndNotBlamed) {
  LookBuilder host;
  for (const int rank : {0, 1}) host.Add(rank, Always(kInGloo), 3);
  host.Add(2, Always(kInValidate), 3);
  v1::ProcessLook* stray = host.Add(0, Always(kInValidate), 3);
  stray->mutable_marks(1)->set_value("1");
  stray->mutable_process()->set_start_time(5);
  LookedAtJob job = JudgeOnly({host.look});
  EXPECT_EQ(job.ranks, 3u);
  EXPECT_EQ(CulpritsOf(job), Culprits({2}));
  ASSERT_EQ(job.unseen.size(), 1u);
  EXPECT_EQ(job.unseen[0],
            "process 4003 on node-1 has rank 0 of this job, too: an earlier run may have left it "
            "behind, and it was left out");
  KeepUnseen(&job);
  const auto& missing = job.incident.verdicts(0).missing_evidence();
  EXPECT_EQ(missing[missing.size() - 1], job.unseen[0]);
}

TEST(JudgeLooksTest, TheLogsOfCulpritsAreFirst) {
  LookBuilder host;
  for (const int rank : {0, 1}) host.Add(rank, Always(kInGloo), 3);
  host.Add(2, Always(kInValidate), 3);
  for (const int process : {0, 2}) {
    v1::LogEnd* log = host.look.add_logs();
    log->set_path(absl::StrCat("/x/", process, ".log"));
    log->add_pids(kFirstPid + process);
    log->set_quiet_seconds(300);
    log->add_lines(absl::StrCat("step ", process));
  }
  host.look.mutable_logs(0)->add_pids(kFirstPid + 1);
  host.look.add_logs()->add_pids(1);  // of another job
  const LookedAtJob job = JudgeOnly({host.look});
  ASSERT_EQ(job.logs.size(), 2u);
  EXPECT_TRUE(job.logs[0].of_culprit);
  EXPECT_EQ(
      LogsInShort(job),
      "\nWhere the log ends\n  rank 2 on node-1: /x/2.log, unchanged for 5 min 0 s\n    step 2\n");
  EXPECT_EQ(LogsInFull(job),
            "  rank 2 on node-1: /x/2.log, unchanged for 5 min 0 s\n    step 2\n"
            "  ranks 0-1 on node-1: /x/0.log, unchanged for 5 min 0 s\n    step 0\n");
}

TEST(JudgeLooksTest, WhatTheHostShowsIsInTheIncident) {
  LookBuilder host;
  for (const int rank : {0, 1}) host.Add(rank, Always(kInGloo), 3);
  host.Add(2, Always(kInValidate), 3);
  v1::HostFact* fact = host.look.mutable_host_facts()->add_facts();
  fact->set_kind("link_down");
  fact->set_subject("mlx5_2 port 1");
  fact->set_age_seconds(21);
  const LookedAtJob job = JudgeOnly({host.look});
  ASSERT_EQ(job.incident.host_facts_size(), 1);
  EXPECT_EQ(job.incident.host_facts(0).facts(0).subject(), "mlx5_2 port 1");
  EXPECT_EQ(job.incident.host_facts_total(), 1);
}

const SeenStack kInMpi = {{{"PMPI_Allreduce", ""}, {"step", "/x/train.py", 8}}, "R"};
const SeenStack kInOtherMpi = {{{"PMPI_Barrier", ""}, {"save", "/x/train.py", 12}}, "R"};

TEST(JudgeLooksTest, CannotTellARingOfSpinningRanksFromAJobInStep) {
  LookBuilder host;
  for (const int rank : {0, 1, 2}) host.Add(rank, Spinning(kInMpi), 3);
  EXPECT_EQ(JudgeOnly({host.look}).outcome, Outcome::kCannotTell);
}

TEST(JudgeLooksTest, BlamesARankThatStandsWhileTheOthersSpin) {
  LookBuilder host;
  for (const int rank : {0, 1}) host.Add(rank, Spinning(kInMpi), 3);
  host.Add(2, Always(kInValidate), 3);
  EXPECT_EQ(CulpritsOf(JudgeOnly({host.look})), Culprits({2}));
}

TEST(JudgeLooksTest, IsNoMoreThanPossibleWhereAllSpin) {
  LookBuilder host;
  for (const int rank : {0, 1}) host.Add(rank, Spinning(kInMpi), 3);
  host.Add(2, Spinning(kInOtherMpi), 3);
  const LookedAtJob job = JudgeOnly({host.look});
  EXPECT_EQ(CulpritsOf(job), Culprits({2}));
  EXPECT_EQ(job.incident.verdicts(0).certainty(), "possible");
}

TEST(JudgeLooksTest, WaitsForTheGpuAreWaitsForTheOthers) {
  const SeenStack gpu = {{{"cudaStreamSynchronize", ""}, {"train", "/x/train.py", 20}}, "R"};
  LookBuilder host;
  for (const int rank : {0, 1, 2}) host.Add(rank, Spinning(gpu), 4);
  host.Add(3, Always(kInValidate), 4);
  const LookedAtJob job = JudgeOnly({host.look});
  EXPECT_EQ(CulpritsOf(job), Culprits({3}));
  EXPECT_NE(job.incident.verdicts(0).summary().find("for the GPU"), std::string::npos)
      << job.incident.verdicts(0).summary();
}

// Stages of a pipeline within one long step look like this, too.
TEST(JudgeLooksTest, CannotTellWhereEachRankWaitsForItsGpu) {
  const auto gpu = [](int line) {
    return Spinning(
        SeenStack{{{"cudaStreamSynchronize", ""}, {"train", "/x/train.py", line}}, "R"});
  };
  LookBuilder host;
  for (const int rank : {0, 1, 2}) host.Add(rank, gpu(80), 4);
  host.Add(3, gpu(95), 4);
  const LookedAtJob job = JudgeOnly({host.look});
  EXPECT_EQ(job.outcome, Outcome::kCannotTell);
}

// The exit code is 2 then.
TEST(SayJobsTest, AHostThatDidNotAnswerIsNamedAlsoIfNothingHangs) {
  LookBuilder host;
  SeenStack works = kInValidate;
  works.cpu_seconds += 3;
  for (const int rank : {0, 1}) host.Add(rank, {kInValidate, kInValidate, works}, 2);
  v1::HostLook silent;
  silent.set_host("node-2");
  silent.set_error("no route");
  const std::vector<v1::HostLook> looks = {host.look, silent};
  const std::string text = SayJobs(JudgeLooks(looks), looks, {});
  EXPECT_NE(text.find("no hang found"), std::string::npos) << text;
  EXPECT_NE(text.find("host node-2: no route"), std::string::npos) << text;
}

TEST(JudgeLooksTest, ExitCodeIsThatOfTheWorstJob) {
  LookedAtJob goes_on, unclear, hangs;
  unclear.outcome = Outcome::kCannotTell;
  hangs.outcome = Outcome::kHangs;
  v1::HostLook look;
  look.add_processes();
  EXPECT_EQ(ExitCodeOf({goes_on}, {look}), 0);
  EXPECT_EQ(ExitCodeOf({goes_on, unclear}, {look}), 2);
  EXPECT_EQ(ExitCodeOf({unclear, hangs, goes_on}, {look}), 3);
  v1::HostLook silent;
  silent.set_error("does not answer");
  EXPECT_EQ(ExitCodeOf({goes_on}, {look, silent}), 2);
}

}  // namespace
}  // namespace rollcall
