// SPDX-License-Identifier: Apache-2.0
// Standstills at threads of the ranks and at processes that they have started.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "standing_job.h"

namespace rollcall {
namespace {

StandThread PrefetchThread() {
  return {5000, "python",
          PlaceOf({" __new_sem_wait_slow64 threading.Condition.wait queue.Queue.put train.prefetch "
                   "PyObject_Call threading.Thread.run threading.Thread._bootstrap_inner "
                   "threading.Thread._bootstrap ",
                   "/x/train.py:48 in prefetch"})};
}

TEST(StandChildrenTest, NamesTheThreadThatTheCulpritLacks) {
  StandingJob job({Reads(4001), kQueue, Reads(4000)});
  for (const size_t i : {0, 2}) job.standings[i]->threads = {PrefetchThread()};
  const Verdict verdict = job.Only();
  EXPECT_EQ(verdict.standstill.lacks_thread, "prefetch");
  EXPECT_EQ(verdict.advice.front().id, "thread-failed");
}

TEST(StandChildrenTest, NamesNoThreadThatTheCulpritHasOrThatNotAllOthersHave) {
  StandingJob job({Reads(4001), kQueue, Reads(4000)});
  for (const size_t i : {0, 1, 2}) job.standings[i]->threads = {PrefetchThread()};
  EXPECT_EQ(job.Only().standstill.lacks_thread, "");
  for (const size_t i : {1, 2}) job.standings[i]->threads.clear();
  EXPECT_EQ(job.Only().standstill.lacks_thread, "") << "rank 0 may have a role of its own";
  EXPECT_EQ(job.Only().advice.front().id, "waits-for-a-thread");
  // It waits for its file, whatever its threads do.
  StandingJob other({Reads(4001), {" flock train.save ", "/x/train.py:5 in save"}, Reads(4000)});
  for (const size_t i : {0, 2}) other.standings[i]->threads = {PrefetchThread()};
  EXPECT_EQ(other.Only().standstill.lacks_thread, "");
  // Of many threads, not all are listed.
  StandingJob many({Reads(4001), kQueue, Reads(4000)});
  for (const size_t i : {0, 2}) many.standings[i]->threads = {PrefetchThread()};
  many.standings[1]->threads.resize(kMostStandThreads);
  EXPECT_EQ(many.Only().standstill.lacks_thread, "");
}

TEST(StandChildrenTest, BlamesTheRankWhoseChildWaitsForIt) {
  StandingJob job(
      {Reads(4001),
       {" read train.count train.main ", "/x/train.py:80 in count", {kChildPid}, EndKind::kPipe},
       Reads(4000)});
  StandingChild child = {kChildPid, 4001, "cat", {PlaceOf({" read main ", "", {4001}})}};
  job.standings[1]->children.push_back(child);
  const Verdict verdict = job.Only();
  EXPECT_EQ(CulpritsOf(verdict), Ranks{1});
  EXPECT_EQ(verdict.standstill.shape, StandShape::kChild);
  EXPECT_EQ(verdict.standstill.others, "its child 9000 (cat)");
  EXPECT_EQ(verdict.advice.front().id, "waits-for-a-child");
}

TEST(StandChildrenTest, SaysThatASignalHasStoppedTheChildForWhichTheCulpritWaits) {
  StandingJob job({Reads(4001),
                   {" __read connection.Connection.recv queues.Queue.get train.load ",
                    "/x/train.py:9 in load",
                    {kChildPid},
                    EndKind::kPipe},
                   Reads(4001)});
  StandingChild child = {kChildPid, 4001, "python", {PlaceOf({" pack ", "/x/train.py:5 in pack"})}};
  child.state = 'T';
  job.standings[1]->children = {child};
  const Verdict verdict = job.Only();
  EXPECT_THAT(verdict.summary,
              testing::HasSubstr("waits for its child 9000 (python), which is stopped by a signal "
                                 "(state T), in a queue of multiprocessing"));
  EXPECT_EQ(verdict.advice.front().id, "stopped-process");
  job.standings[1]->children.front().state = 'S';
  EXPECT_EQ(job.Only().advice.front().id, "waits-for-a-child");
}

// It writes its result by a thread of its own, and its parent waits for its end.
TEST(StandChildrenTest, AChildThatWritesToItsParentIsNotAServer) {
  const RankPlaceOf joins = {" wait4 popen_fork.Popen.poll process.BaseProcess.join train.gather ",
                             "/x/train.py:26 in gather"};
  StandingJob job({Reads(4001), joins, Reads(4000)});
  const StandPlace ends = PlaceOf({" __new_sem_wait_slow64 threading.Thread.join ", ""});
  const StandPlace writes =
      PlaceOf({" __libc_write connection._send queues._feed ", "", {4001}, EndKind::kPipe});
  job.standings[1]->children = {{kChildPid, 4001, "python", {ends, writes}}};
  const Verdict verdict = job.Only();
  EXPECT_EQ(CulpritsOf(verdict), Ranks{1});
  EXPECT_EQ(verdict.standstill.shape, StandShape::kChild);
  EXPECT_EQ(verdict.advice.front().id, "waits-for-a-child");
}

TEST(StandChildrenTest, DoesNotSeeWhatAChildOnAnotherHostWaitsFor) {
  const RankPlaceOf waits = {" wait4 subprocess.wait train.launch ", "/x/train.py:5 in launch"};
  StandingJob job({waits, Reads(4000), Reads(4000)});
  job.standings[0]->children = {{kChildPid, 4000, "rsync", {PlaceOf({" __select main ", ""})}}};
  EXPECT_EQ(CulpritsOf(job.Only()), Ranks{0});
  job.standings[0]->children[0].name = "srun";
  EXPECT_TRUE(job.Judge().empty());
}

// A worker of rank 0's data loader has a copy of the socket at which rank 0 waits for a thread of
// its own.
TEST(StandChildrenTest, BlamesNoChildThatOnlyHasACopyOfASocket) {
  const StandPlace worker =
      PlaceOf({" poll queues.Queue.get worker._worker_loop process.BaseProcess._bootstrap "
               "popen_fork.Popen._launch dataloader.DataLoader.__iter__ train.run ",
               "/x/train.py:39 in run",
               {4000},
               EndKind::kPipe});
  StandingJob job({Reads(kChildPid), kQueue, Reads(4000)});
  job.standings[0]->children = {{kChildPid, 4000, "python", {worker}}};
  job.standings[0]->threads = {
      {4100, "hub", PlaceOf({" __recv train.serve ", "/x/train.py:9 in serve", {4001}})}};
  EXPECT_EQ(CulpritsOf(job.Only()), Ranks{1});
}

}  // namespace
}  // namespace rollcall
