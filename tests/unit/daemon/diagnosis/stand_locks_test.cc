// SPDX-License-Identifier: Apache-2.0
// Standstills at locks of files and of managers, and at full queues.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "standing_job.h"

namespace rollcall {
namespace {

TEST(StandLocksTest, BlamesTheHolderOfALock) {
  const RankPlaceOf locks = {" flock train.take ", "/x/train.py:25 in take"};
  const RankPlaceOf polls = {" clock_nanosleep train.wait_for_file ",
                             "/x/train.py:69 in wait_for_file"};
  StandingJob job({polls, locks, locks});
  for (const size_t i : {1, 2}) {
    job.standings[i]->locks = {{7, "/x/cache.lock", 4000, true}};
  }
  const Verdict verdict = job.Only();
  EXPECT_EQ(CulpritsOf(verdict), Ranks{0});
  EXPECT_EQ(verdict.standstill.on, "/x/cache.lock");
  EXPECT_EQ(verdict.advice.front().id, "file-lock");
}

TEST(StandLocksTest, FollowsAWorkerOfARankToTheHolderOfALock) {
  const RankPlaceOf loads = {" poll dataloader._try_get_data dataloader.__next__ train.main ",
                             "/x/train.py:9 in main"};
  StandingJob job({loads, Reads(4000), kQueue});
  job.standings[0]->children = {{kChildPid,
                                 4000,
                                 "pt_data_worker",
                                 {PlaceOf({" flock fcntl.flock train.unpack worker._worker_loop ",
                                           "/x/train.py:25 in unpack"})}}};
  // The only lock that a rank holds need not be this one.
  job.standings[2]->locks = {{7, "/x/cache.lock", 4002, false}};
  EXPECT_EQ(CulpritsOf(job.Only()), Ranks{0});
  FileLockSeen awaited = {7, "/x/cache.lock", 4002, true};
  awaited.child = kChildPid;
  job.standings[0]->locks = {awaited};
  const Verdict verdict = job.Only();
  EXPECT_EQ(CulpritsOf(verdict), Ranks{2});
  EXPECT_EQ(verdict.standstill.on, "/x/cache.lock");
  EXPECT_EQ(verdict.advice.front().id, "waits-for-a-thread");
  // A lock of a descriptor: the kernel names no holder.
  job.standings[0]->locks[0].holder = 0;
  EXPECT_EQ(CulpritsOf(job.Only()), Ranks{2});
  job.standings[0]->locks[0].inode = 8;
  EXPECT_EQ(CulpritsOf(job.Only()), Ranks{0}) << "nothing shows who has it";
}

// Of the locks of descriptors the kernel names no holder.
TEST(StandLocksTest, FindsTheHolderOfALockByItsBytes) {
  const auto locks = [](const char* at) { return RankPlaceOf{" fcntl train.move ", at}; };
  const char* const path = "/x/records";
  StandingJob job({locks("/x/train.py:25 in move"), locks("/x/train.py:31 in move"),
                   locks("/x/train.py:25 in move")});
  job.standings[0]->locks = {{7, path, 0, true, 64, 127}, {7, path, 4000, false, 0, 63}};
  job.standings[1]->locks = {{7, path, 0, true, 0, 63}, {7, path, 4001, false, 64, 127}};
  job.standings[2]->locks = {{7, path, 0, true, 0, 63}};
  const Verdict verdict = job.Only();
  EXPECT_EQ(CulpritsOf(verdict), (Ranks{0, 1}));
  EXPECT_EQ(verdict.waiting_ranks, Ranks{2});
  EXPECT_EQ(verdict.certainty, Certainty::kLikely);
  EXPECT_EQ(verdict.standstill.shape, StandShape::kRing);
  EXPECT_EQ(verdict.advice.front().id, "lock-order");
}

// The holders of some kinds of locks are unknown.
TEST(StandLocksTest, BlamesNoRankForWhereItAsksForALockOfAFile) {
  const auto locks = [](const char* at) { return RankPlaceOf{" flock train.take ", at}; };
  const Verdict verdict =
      StandingJob({locks("/x/train.py:25 in take"), locks("/x/train.py:25 in take"),
                   locks("/x/train.py:31 in take")})
          .Only();
  EXPECT_EQ(CulpritsOf(verdict), (Ranks{0, 1, 2}));
  EXPECT_EQ(verdict.certainty, Certainty::kPossible);
}

// Its main thread waits for requests, and another one for the lock that a client has asked for.
TEST(StandLocksTest, BlamesTheRankThatWaitsForALockOfItsManager) {
  const RankPlaceOf asks = {
      " __libc_read connection.Connection.recv managers._callmethod "
      "managers.AcquirerProxy.__enter__ train.count ",
      "/x/train.py:38 in count",
      {kChildPid},
      EndKind::kSocket};
  const StandPlace main =
      PlaceOf({" __new_sem_wait_slow64 threading.Event.wait managers.Server.serve_forever ", ""});
  const auto serves = [](const char* functions) { return PlaceOf({functions, ""}); };
  const StandPlace reads = PlaceOf(
      {" __libc_read connection.Connection.recv managers.Server.serve_client ", "", {4002}});
  StandingJob job({Reads(4001), asks, Reads(4000)});
  job.standings[1]->children = {
      {kChildPid,
       4001,
       "python",
       {main, reads,
        serves(" __new_sem_wait_slow64 PyThread_acquire_lock_timed PyObject_Call "
               "managers.Server.serve_client managers.Server.handle_request ")}}};
  const Verdict verdict = job.Only();
  EXPECT_EQ(CulpritsOf(verdict), Ranks{1});
  EXPECT_THAT(verdict.summary,
              testing::HasSubstr("waits for its child 9000 (python), which waits in a lock, in a "
                                 "queue or another object of a manager of multiprocessing"));
  EXPECT_EQ(verdict.advice.front().id, "waits-for-a-child");
  // In the queues of a manager, workers wait for work: nothing shows that the manager stands.
  for (const char* functions :
       {" __libc_read connection.Connection.recv managers.Server.serve_client ",
        " __new_sem_wait_slow64 threading.Condition.wait queue.Queue.get "
        "managers.Server.serve_client "}) {
    job.standings[1]->children.front().places.back() = serves(functions);
    EXPECT_EQ(job.Only().standstill.others, "") << functions;
  }
}

// The rank that should empty the queue puts into it, too.
TEST(StandLocksTest, WhereAllPutIntoAFullQueueNoRankIsToBlame) {
  const char* const line = "/x/train.py:68 in give";
  const RankPlaceOf own = {" __new_sem_wait_slow64 queue.Queue.put train.give ", line};
  const RankPlaceOf through_manager = {
      " __libc_read managers._callmethod <string>.put train.give ", line, {4000}, EndKind::kSocket};
  const Verdict verdict = StandingJob({own, through_manager, through_manager}).Only();
  EXPECT_EQ(verdict.culprits.size(), 0u);
  EXPECT_EQ(verdict.certainty, Certainty::kPossible);
  EXPECT_THAT(verdict.summary, testing::HasSubstr("which is full"));
  EXPECT_EQ(verdict.advice.front().id, "queue-is-full");
}

// One that had room for its tasks waits for what becomes of them. The rank that keeps the queue,
// and that two others wait for by its manager, stands where another one does.
TEST(StandLocksTest, WhereSeveralPutIntoAFullQueueTheRankThatKeepsItIsNotToBlame) {
  const char* const line = "/x/train.py:68 in give";
  const auto through_manager = [](const char* functions, const char* at) {
    return RankPlaceOf{functions, at, {4000}, EndKind::kSocket};
  };
  const RankPlaceOf own = {" __new_sem_wait_slow64 queue.Queue.put train.give ", line};
  const RankPlaceOf puts =
      through_manager(" __libc_read managers._callmethod <string>.put train.give ", line);
  const RankPlaceOf gets = through_manager(
      " __libc_read managers._callmethod <string>.get train.give ", "/x/train.py:74 in give");
  const Verdict verdict = StandingJob({own, gets, puts}).Only();
  EXPECT_EQ(verdict.culprits.size(), 0u);
  EXPECT_EQ(verdict.certainty, Certainty::kPossible);
  EXPECT_THAT(verdict.summary, testing::HasSubstr("which is full"));
  EXPECT_EQ(verdict.advice.front().id, "queue-is-full");
  EXPECT_EQ(CulpritsOf(StandingJob({own, gets, gets}).Only()), Ranks{0}) << "one rank alone puts";
}

}  // namespace
}  // namespace rollcall
