// SPDX-License-Identifier: Apache-2.0
// Children that work, exceptions that are handled, sockets between ranks, and threads that keep a
// process alive.
#include "daemon/diagnosis/waits/outside_waits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "daemon/diagnosis/diagnose.h"
#include "daemon/diagnosis/life/incident_life.h"
#include "job_builder.h"

namespace rollcall {
namespace {

// Ranks 0 to 2 wait for rank 3, which stands in prepare().
class OutsideWaitsTest : public testing::Test {
 protected:
  OutsideWaitsTest() {
    job_.Finish(12);
    job_.Enter({0, 1, 2}, At(10));
    culprit().place = {"/x/train.py:31 in prepare", "Future.result", true,
                       " futex threading.Condition.wait _base.Future.result train.prepare "};
    job_.process(0).place = {"/x/train.py:9 in step", "", true, " train.step "};
    for (int rank = 0; rank < 4; ++rank) {
      job_.process(rank).stacks_ns = At(30);
      job_.process(rank).has_met = true;
    }
  }
  Process& culprit() { return job_.process(3); }
  Verdict Judge(int seconds = 80) {
    const std::vector<Verdict> verdicts = Diagnose(job_.state, At(seconds), Limits());
    EXPECT_EQ(verdicts.size(), 1u);
    return verdicts.empty() ? Verdict() : verdicts[0];
  }
  static bool Says(const Verdict& v, const std::string& words) {
    return absl::StrContains(v.summary, words);
  }
  static bool IsEvidence(const Verdict& v, const std::string& line) {
    return std::find(v.evidence.begin(), v.evidence.end(), line) != v.evidence.end();
  }
  JobBuilder job_{4};
};

TEST_F(OutsideWaitsTest, ARankWhoseChildrenWorkIsLate) {
  culprit().children_at_work = {{4711, "python3", 0.9}, {4712, "python3", 0.8}};
  culprit().outside_moved_ns = At(30);
  const Verdict v = Judge();
  EXPECT_TRUE(v.late);
  EXPECT_EQ(v.certainty, Certainty::kLikely);
  EXPECT_EQ(v.advice.front().id, "waits-for-a-child");
  EXPECT_EQ(v.summary,
            "rank 3 (node-3, pid 4003) is in `prepare` (train.py:31), waiting in Future.result, "
            "and is late for AllReduce #12 on communicator \"dp\"; its processes 4711 and 4712 "
            "work; 3 ranks have waited 70 s");
  EXPECT_TRUE(IsEvidence(v, "rank 3: its processes 4711 and 4712 work"));
}

TEST_F(OutsideWaitsTest, ARankThatReceivesIsLate) {
  culprit().receives = 12'500;
  culprit().outside_moved_ns = At(30);
  const Verdict v = Judge();
  EXPECT_TRUE(v.late);
  EXPECT_TRUE(Says(v, "; it receives 12.5 kB a second; 3 ranks")) << v.summary;
  EXPECT_EQ(v.certainty, Certainty::kLikely);
}

// Of so many culprits the agents take the stacks of a sample.
TEST(ManyOutsideWaitsTest, AreJudgedByThoseWhoseStacksAreKnown) {
  JobBuilder job(400);
  job.Finish(12);
  job.Enter(JobBuilder::Ranks(300, 400), At(10));
  for (int rank = 0; rank < 300; rank += 2) {
    job.process(rank).stacks_ns = At(30);
    job.process(rank).outside_moved_ns = At(30);
    job.process(rank).children_at_work = {{4711, "python3", 0.9}};
  }
  const auto judge = [&job] { return Diagnose(job.state, At(80), Limits()).at(0); };
  EXPECT_TRUE(judge().late);
  job.process(298).outside_moved_ns = 0;
  EXPECT_FALSE(judge().late);
}

TEST_F(OutsideWaitsTest, WorkOfBeforeTheWaitSaysNothing) {
  culprit().children_at_work = {{4711, "python3", 0.9}};
  culprit().outside_moved_ns = At(5);
  EXPECT_FALSE(Judge().late);
  EXPECT_EQ(Judge().certainty, Certainty::kCertain);
}

// Until a time the samples show that children work; then they show none that does.
int64_t ConfirmedAt(JobBuilder* job, int works_until) {
  IncidentLife life(job->state.key);
  job->process(3).outside_moved_ns = 0;
  for (int seconds = 30; seconds < 600; seconds += 5) {
    const int64_t now_ns = At(seconds);
    Process& process = job->process(3);
    process.stacks_ns = now_ns;
    process.children_at_work.clear();
    if (seconds <= works_until) {
      process.children_at_work = {{4711, "python3", 0.9}};
      process.outside_moved_ns = now_ns;
    }
    for (const IncidentEvent& event : life.Update(
             job->state, Diagnose(job->state, now_ns, Limits()), now_ns, Limits(), View::kWhole)) {
      if (event.kind == IncidentEvent::Kind::kConfirmed) return seconds;
    }
  }
  return 0;
}

TEST_F(OutsideWaitsTest, NothingIsConfirmedWhileTheyWorkAndAWholeWaitAfterwards) {
  EXPECT_EQ(ConfirmedAt(&job_, 600), 0);
  EXPECT_EQ(ConfirmedAt(&job_, 300), 360);
  EXPECT_EQ(ConfirmedAt(&job_, 0), 70);
}

TEST_F(OutsideWaitsTest, StacksAreTakenAgainWhileTheyWorkLessAndLessOften) {
  culprit().children_at_work = {{4711, "python3", 0.9}};
  IncidentLife life(job_.state.key);
  int again = 0;
  for (int seconds = 30; seconds < 130; ++seconds) {
    const int64_t now_ns = At(seconds);
    culprit().stacks_ns = culprit().outside_moved_ns = now_ns;
    for (const IncidentEvent& event : life.Update(
             job_.state, Diagnose(job_.state, now_ns, Limits()), now_ns, Limits(), View::kWhole)) {
      again += event.kind == IncidentEvent::Kind::kTakeStacksAgain;
    }
  }
  EXPECT_EQ(again, 5);
}

TEST_F(OutsideWaitsTest, ReportsTheHandledException) {
  culprit().place.handles = {"ValueError", "bad shard", "/x/data.py:40 in load_shard"};
  const Verdict v = Judge();
  EXPECT_EQ(v.advice.front().id, "handles-an-exception");
  EXPECT_TRUE(Says(v, "; rank 3 is handling ValueError: bad shard (`load_shard` (data.py:40))"))
      << v.summary;
  EXPECT_TRUE(
      IsEvidence(v, "rank 3 is handling ValueError: bad shard (`load_shard` (data.py:40))"));
}

TEST_F(OutsideWaitsTest, AnExceptionThatExplainsNothingIsNotTold) {
  const PlaceException of_all = {"KeyError", "'a'", "/x/cache.py:3 in get"};
  for (const PlaceException& exception :
       {PlaceException{"StopIteration", "", "/x/data.py:40 in next_batch"},
        PlaceException{"Empty", "", "/x/data.py:41 in next_batch"},
        PlaceException{"ValueError", "raised and handled within a library", ""}, of_all}) {
    culprit().place.handles = exception;
    job_.process(0).place.handles = of_all;
    EXPECT_FALSE(Says(Judge(), "is handling")) << exception.type;
  }
}

TEST_F(OutsideWaitsTest, ASocketToARankThatWaitsIsACycle) {
  for (int rank = 0; rank < 4; ++rank) job_.process(rank).host = "node-0";
  culprit().place = {"/x/train.py:31 in ask", "socket.recv", true, " recv urlopen train.ask "};
  culprit().place.other_end = {job_.process(1).pid, 999};
  const Verdict v = Judge();
  EXPECT_TRUE(Says(v, "; rank 3 waits at a socket for rank 1, which waits for it")) << v.summary;
  EXPECT_EQ(v.advice.front().id, "mixed-backends");
  for (const Advice& advice : v.advice) EXPECT_NE(advice.id, "downloads-alone");
}

// The rank at the other end holds the store, and owes the key no more than others do.
TEST_F(OutsideWaitsTest, ASocketToTheStoreDoesNotCount) {
  for (int rank = 0; rank < 4; ++rank) job_.process(rank).host = "node-0";
  for (const char* call : {"doGet", "doWait"}) {
    culprit().place = {
        "/x/train.py:31 in join", "distributed_c10d.all_reduce", true,
        std::string(" recv c10d::TCPStore::") + call + " distributed_c10d.all_reduce train.join "};
    culprit().place.other_end = {job_.process(1).pid};
    EXPECT_TRUE(Judge().socket.others.empty()) << call;
  }
}

TEST_F(OutsideWaitsTest, ASocketToAnotherProcessDoesNotCount) {
  culprit().place = {"/x/train.py:31 in ask", "socket.recv", true, " recv urlopen train.ask "};
  culprit().place.other_end = {999};
  EXPECT_EQ(Judge().advice.front().id, "downloads-alone");
}

TEST_F(OutsideWaitsTest, TheExceptionThatEndedAThreadIsNamed) {
  culprit().thread_failure = {"prefetch", "ValueError: bad shard at data.py:40", At(8)};
  const Verdict v = Judge();
  EXPECT_EQ(
      v.summary,
      "rank 3 (node-3, pid 4003) is in `prepare` (train.py:31), waiting in Future.result, "
      "and has not called AllReduce #12 on communicator \"dp\"; thread \"prefetch\" of rank 3 "
      "ended with ValueError: bad shard at data.py:40; 3 ranks have waited 70 s");
  EXPECT_TRUE(IsEvidence(
      v, "thread \"prefetch\" of rank 3 ended with ValueError: bad shard at data.py:40"));
  EXPECT_EQ(v.advice.front().id, "thread-failed");
  EXPECT_EQ(v.culprits[0].thread_error, "ValueError: bad shard at data.py:40");
  EXPECT_EQ(v.culprits[0].failed_thread, "prefetch");
  EXPECT_EQ(v.culprits[0].error, "") << "its program goes on";
}

TEST_F(OutsideWaitsTest, AThreadThatEndedLongBeforeExplainsNothing) {
  culprit().thread_failure = {"prefetch", "ValueError: bad shard at data.py:40", At(9 - 600)};
  const Verdict v = Judge();
  EXPECT_FALSE(Says(v, "prefetch"));
  for (const Advice& advice : v.advice) EXPECT_NE(advice.id, "thread-failed");
}

TEST_F(OutsideWaitsTest, AThreadOfARankThatWaitsExplainsNothing) {
  job_.process(0).thread_failure = {"prefetch", "ValueError: bad shard at data.py:40", At(8)};
  EXPECT_FALSE(Says(Judge(), "prefetch"));
}

TEST_F(OutsideWaitsTest, TheThreadThatKeepsAProcessIsNamed) {
  culprit().error = "ValueError: bad loss at train.py:57";
  culprit().error_ns = At(20);
  culprit().keepers = {
      {4100, "uploads", {"/x/train.py:70 in send_files", "Queue.get", true, " queue.Queue.get "}}};
  const Verdict v = Judge();
  EXPECT_TRUE(Says(v,
                   "; thread \"uploads\" of rank 3 in `send_files` (train.py:70), waiting in "
                   "Queue.get, keeps its process alive"))
      << v.summary;
  EXPECT_TRUE(Says(v, "ValueError: bad loss")) << v.summary;
  EXPECT_EQ(v.advice.front().id, "handles-an-exception");
}

}  // namespace
}  // namespace rollcall
