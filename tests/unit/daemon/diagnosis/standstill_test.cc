// SPDX-License-Identifier: Apache-2.0
// Jobs that stand still outside of recorded calls, by what samples of their stacks show.
#include "daemon/diagnosis/standing/standstill.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "job_builder.h"

namespace rollcall {
namespace {

using Ranks = std::vector<int32_t>;

constexpr int32_t kChildPid = 9000;

struct RankPlaceOf {
  const char* functions;  // innermost first
  const char* at;
  std::vector<int32_t> other_end = {};
  EndKind end = EndKind::kNone;
};

StandPlace PlaceOf(const RankPlaceOf& seen) {
  StackPlace place;
  place.functions = seen.functions;
  place.at = seen.at;
  place.other_end = seen.other_end;
  place.end = seen.end;
  place.sleeps = true;
  return StandPlace(std::move(place));
}

const RankPlaceOf kQueue = {" __new_sem_wait_slow64 queue.Queue.get train.load ",
                            "/x/train.py:9 in load"};
const RankPlaceOf kServes = {" poll selectors.select socketserver.serve_forever train.main ",
                             "/x/train.py:70 in main"};

RankPlaceOf Reads(int32_t pid, const char* at = "/x/train.py:42 in receive") {
  return {" __recv train.receive train.main ", at, {pid}, EndKind::kSocket};
}

// A job of ranks without a recorded call, which have stood since second 10. Rank i has the pid
// 4000 + i.
struct StandingJob : JobBuilder {
  explicit StandingJob(const std::vector<RankPlaceOf>& places)
      : JobBuilder(static_cast<int>(places.size())) {
    state.communicators.clear();
    for (size_t i = 0; i < places.size(); ++i) {
      Process& process = state.processes[i];
      process.host = "node";
      process.has_segment = false;
      process.place = PlaceOf(places[i]);
      process.stacks_ns = At(60);
      standings.push_back(std::make_shared<Standing>());
      Standing& standing = *standings.back();
      standing.since_ns = At(10);
      standing.newest_ns = At(60);
      standing.state = 'S';
      standing.place = PlaceOf(places[i]);
      standing.newest.threads[{process.pid, process.pid}].position =
          std::hash<std::string>()(places[i].at);
      process.standing = standings.back();
    }
  }

  std::vector<Verdict> Judge(double now = 61) const { return Diagnose(state, At(now), Limits()); }

  Verdict Only() const {
    std::vector<Verdict> verdicts = Judge();
    EXPECT_EQ(verdicts.size(), 1u);
    return verdicts.empty() ? Verdict() : std::move(verdicts.front());
  }

  std::vector<std::shared_ptr<Standing>> standings;
};

Ranks CulpritsOf(const Verdict& verdict) {
  Ranks ranks;
  for (const Culprit& culprit : verdict.culprits) ranks.push_back(culprit.rank);
  return ranks;
}

TEST(StandstillTest, BlamesTheRankThatTheOthersWaitFor) {
  const StandingJob job({Reads(4001), kQueue, Reads(4000)});
  const Verdict verdict = job.Only();
  EXPECT_EQ(verdict.cause, Cause::kStandstill);
  EXPECT_EQ(verdict.certainty, Certainty::kLikely);
  EXPECT_EQ(CulpritsOf(verdict), Ranks{1});
  EXPECT_EQ(verdict.waiting_ranks, (Ranks{0, 2}));
  EXPECT_EQ(verdict.summary,
            "rank 1 (node, pid 4001) is in `load` (train.py:9) and waits in a queue of its own "
            "threads, and ranks 0,2 wait for it, in a socket: no rank moves; 2 ranks have waited "
            "50 s");
  EXPECT_EQ(verdict.advice.front().id, "waits-for-a-thread");
}

StandThread PrefetchThread() {
  return {5000, "python",
          PlaceOf({" __new_sem_wait_slow64 threading.Condition.wait queue.Queue.put train.prefetch "
                   "PyObject_Call threading.Thread.run threading.Thread._bootstrap_inner "
                   "threading.Thread._bootstrap ",
                   "/x/train.py:48 in prefetch"})};
}

TEST(StandstillTest, NamesTheThreadThatTheCulpritLacks) {
  StandingJob job({Reads(4001), kQueue, Reads(4000)});
  for (const size_t i : {0, 2}) job.standings[i]->threads = {PrefetchThread()};
  const Verdict verdict = job.Only();
  EXPECT_EQ(verdict.standstill.lacks_thread, "prefetch");
  EXPECT_EQ(verdict.advice.front().id, "thread-failed");
}

TEST(StandstillTest, NamesNoThreadThatTheCulpritHasOrThatNotAllOthersHave) {
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

TEST(StandstillTest, TheProcessWithTheServerOfAStoreDoesNotSetItsKeys) {
  const auto in_store = [](std::vector<int32_t> server) {
    return RankPlaceOf{" poll c10d::TCPStore::doWait c10d::TCPStore::wait train.meet ",
                       "/x/train.py:5 in meet", std::move(server), EndKind::kSocket};
  };
  const Verdict verdict =
      StandingJob({in_store({}), in_store({4000}), in_store({4000}), kQueue}).Only();
  EXPECT_EQ(CulpritsOf(verdict), Ranks{3});
}

TEST(StandstillTest, BlamesRanksThatWaitForEachOther) {
  const Verdict verdict = StandingJob({Reads(4002), Reads(4000, "/x/train.py:8 in send"),
                                       Reads(4000, "/x/train.py:9 in send")})
                              .Only();
  EXPECT_EQ(CulpritsOf(verdict), (Ranks{0, 2}));
  EXPECT_EQ(verdict.standstill.shape, StandShape::kRing);
  EXPECT_EQ(verdict.advice.front().id, "ask-the-other-end");
}

// The rank that should empty the queue puts into it, too.
TEST(StandstillTest, WhereAllPutIntoAFullQueueNoRankIsToBlame) {
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
TEST(StandstillTest, WhereSeveralPutIntoAFullQueueTheRankThatKeepsItIsNotToBlame) {
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

TEST(StandstillTest, SaysThatACulpritIsInAHandlerOfASignal) {
  const RankPlaceOf handler = {
      " PyThread_acquire_lock_timed train.write train.<lambda> PyErr_CheckSignals time.sleep "
      "train.write ",
      "/x/train.py:40 in write"};
  const Verdict verdict = StandingJob({Reads(4001), handler, Reads(4001)}).Only();
  EXPECT_EQ(CulpritsOf(verdict), Ranks{1});
  EXPECT_THAT(verdict.summary, testing::HasSubstr("waits in a lock, in a handler of a signal"));
  EXPECT_EQ(verdict.advice.front().id, "signal-handler");
}

// It waits until all have come, and those that have come wait for its answer.
TEST(StandstillTest, BlamesTheRankInTheMiddleOfARing) {
  RankPlaceOf hub = {" epoll_wait selectors.EpollSelector.select train.greet ",
                     "/x/train.py:77 in greet",
                     {4001, 4002},
                     EndKind::kSocket};
  const Verdict verdict = StandingJob({hub, Reads(4000), Reads(4000)}).Only();
  EXPECT_EQ(CulpritsOf(verdict), Ranks{0});
  EXPECT_EQ(verdict.advice.front().id, "lacking-party");
}

TEST(StandstillTest, BlamesTheRankWhoseChildWaitsForIt) {
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

TEST(StandstillTest, SaysThatASignalHasStoppedTheChildForWhichTheCulpritWaits) {
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

// Two ranks that serve HTTP ask each other.
TEST(StandstillTest, AnAnswerThatAnotherRankOwesIsNoDownload) {
  const auto asks = [](int32_t pid) {
    return RankPlaceOf{" __recv client.HTTPResponse._read_status request.urlopen train.ask ",
                       "/x/train.py:31 in ask",
                       {pid},
                       EndKind::kSocket};
  };
  const Verdict verdict = StandingJob({asks(4001), asks(4000), asks(4000)}).Only();
  EXPECT_EQ(CulpritsOf(verdict), (Ranks{0, 1}));
  EXPECT_EQ(verdict.advice.front().id, "ask-the-other-end");
}

TEST(StandstillTest, BlamesTheHolderOfALock) {
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

TEST(StandstillTest, FollowsAWorkerOfARankToTheHolderOfALock) {
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
TEST(StandstillTest, FindsTheHolderOfALockByItsBytes) {
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

// Its main thread waits for requests, and another one for the lock that a client has asked for.
TEST(StandstillTest, BlamesTheRankThatWaitsForALockOfItsManager) {
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

// It writes its result by a thread of its own, and its parent waits for its end.
TEST(StandstillTest, AChildThatWritesToItsParentIsNotAServer) {
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

// The holders of some kinds of locks are unknown.
TEST(StandstillTest, BlamesNoRankForWhereItAsksForALockOfAFile) {
  const auto locks = [](const char* at) { return RankPlaceOf{" flock train.take ", at}; };
  const Verdict verdict =
      StandingJob({locks("/x/train.py:25 in take"), locks("/x/train.py:25 in take"),
                   locks("/x/train.py:31 in take")})
          .Only();
  EXPECT_EQ(CulpritsOf(verdict), (Ranks{0, 1, 2}));
  EXPECT_EQ(verdict.certainty, Certainty::kPossible);
}

TEST(StandstillTest, BlamesTheRankThatStandsElsewhere) {
  const RankPlaceOf barrier = {" pthread_barrier_wait main ", "/x/b.c:52 in main"};
  const RankPlaceOf batch = {" pthread_cond_wait TakeBatch main ", "/x/b.c:40 in TakeBatch"};
  EXPECT_EQ(CulpritsOf(StandingJob({barrier, barrier, batch}).Only()), Ranks{2});
  // Of two, the one that waits for no other rank else.
  EXPECT_EQ(CulpritsOf(StandingJob({batch, barrier}).Only()), Ranks{0});
}

// Two containers may have the same host name, and their processes the same number.
TEST(StandstillTest, TwoRanksWithOneNumberAreTwo) {
  StandingJob job({Reads(4002), Reads(4002), kQueue});
  job.state.processes[1].pid = job.state.processes[0].pid;
  job.state.processes[1].start_time += 1;
  EXPECT_EQ(CulpritsOf(job.Only()), Ranks{2});
}

TEST(StandstillTest, ARankThatSleepsMayWake) {
  const RankPlaceOf sleeps = {" clock_nanosleep time.sleep train.rest ", "/x/train.py:9 in rest"};
  const RankPlaceOf reads = {" __recv train.receive ", "/x/train.py:42 in receive"};
  const Verdict verdict = StandingJob({sleeps, reads, reads}).Only();
  EXPECT_EQ(CulpritsOf(verdict), Ranks{0});
  EXPECT_EQ(verdict.certainty, Certainty::kPossible);
}

// MPI's calls are recorded: what a rank owes there, the messages show.
TEST(StandstillTest, FindsNoStandstillIfARankRestsWhileOthersWaitInMpi) {
  const RankPlaceOf recv = {" poll ompi_request_default_wait PMPI_Recv main ",
                            "/x/pool.c:40 in main"};
  const RankPlaceOf rests = {" clock_nanosleep sleep main ", "/x/pool.c:52 in main"};
  EXPECT_TRUE(StandingJob({recv, rests, recv}).Judge().empty());
  const RankPlaceOf locks = {" __lll_lock_wait pthread_mutex_lock main ", "/x/pool.c:52 in main"};
  EXPECT_EQ(CulpritsOf(StandingJob({recv, locks, recv}).Only()), Ranks{1});
}

TEST(StandstillTest, ARankInTheKernelWaitsForAFileSystem) {
  StandingJob job({Reads(4001), {" openat train.save ", "/x/train.py:31 in save"}, Reads(4000)});
  job.standings[1]->state = 'D';
  const Verdict verdict = job.Only();
  EXPECT_EQ(CulpritsOf(verdict), Ranks{1});
  EXPECT_THAT(verdict.summary, testing::HasSubstr("a file system that does not answer"));
}

TEST(StandstillTest, UnseenRanksMayWork) {
  StandingJob job({Reads(4001), kQueue, Reads(4000)});
  for (Process& process : job.state.processes) process.world_size = 8;
  EXPECT_EQ(job.Only().certainty, Certainty::kPossible);
}

TEST(StandstillTest, ARankMayLiveOnAfterTheOthersHaveEndedWell) {
  StandingJob job({{" clock_nanosleep time.sleep train.keep ", "/x/train.py:90 in keep"}, kQueue});
  Process& ended = job.state.processes[1];
  ended.liveness = Liveness::kExited;
  ended.exit_code = 0;
  ended.standing = nullptr;
  EXPECT_TRUE(job.Judge().empty());
  ended.liveness = Liveness::kDied;
  ended.exit_code = 1;
  EXPECT_EQ(CulpritsOf(job.Only()), Ranks{1});
}

TEST(StandstillTest, RanksThatAllSleepGoOnByThemselvesAtWhateverLine) {
  const RankPlaceOf rests = {" clock_nanosleep sleep Nonblocking main ", "/x/job.c:197 in Work"};
  StandingJob job(
      {rests, rests, {" clock_nanosleep sleep Nonblocking main ", "/x/job.c:195 in Rest"}});
  EXPECT_TRUE(job.Judge().empty());
}

void EndWell(Process* process) {
  process->liveness = Liveness::kExited;
  process->exit_code = 0;
  process->standing = nullptr;
}

// The lock is free now, and no sample shows yet that somebody takes it.
TEST(StandstillTest, AWaitCountsFromTheEndOfTheOthers) {
  const RankPlaceOf flock = {" flock fcntl_flock train.save ", "/x/train.py:25 in save"};
  StandingJob job({flock, kQueue});
  EndWell(&job.state.processes[1]);
  job.state.processes[1].ended_ns = At(15);
  EXPECT_EQ(job.Only().standstill.shape, StandShape::kEnded);
  job.state.processes[1].ended_ns = At(59);
  EXPECT_TRUE(job.Judge().empty());
}

// It would have read the end of its connection.
TEST(StandstillTest, AReaderOfAnAnswerDoesNotWaitForARankThatEndedNormally) {
  StandingJob job({{" __recv client.HTTPResponse.read train.report ",
                    "/x/train.py:9 in report",
                    {},
                    EndKind::kSocket},
                   kQueue});
  EndWell(&job.state.processes[1]);
  EXPECT_TRUE(job.Judge().empty());
}

TEST(StandstillTest, BlamesNoEndedRankForAWaitForAnOwnChild) {
  StandingJob job(
      {{" wait4 popen_fork.Popen.poll process.BaseProcess.join train.end ", "/x/train.py:9 in end"},
       kQueue});
  EndWell(&job.state.processes[1]);
  EXPECT_EQ(CulpritsOf(job.Only()), Ranks{});
}

TEST(StandstillTest, EachRankForWhichOneWaitsIsNamed) {
  StandingJob job({{" epoll_wait selectors.EpollSelector.select train.collect ",
                    "/x/train.py:7 in collect",
                    {4001, 4002},
                    EndKind::kSocket},
                   {" __lll_lock_wait pthread_mutex_lock train.a ", "/x/train.py:5 in a"},
                   kQueue});
  EXPECT_EQ(CulpritsOf(job.Only()), (Ranks{1, 2}));
}

TEST(StandstillTest, AScriptThatWaitsForAServerWithoutRequestsStandsForNothing) {
  const RankPlaceOf waits = {" wait4 main ", "", {kChildPid}, EndKind::kProcess};
  StandingJob job({waits, waits});
  for (size_t i = 0; i < 2; ++i) {
    job.standings[i]->children = {
        {kChildPid, 4000 + static_cast<int32_t>(i), "python", {PlaceOf(kServes)}}};
  }
  EXPECT_TRUE(job.Judge().empty());
}

// Its scheduler waits for requests in a queue, and its workers for the scheduler.
TEST(StandstillTest, AnEngineWithoutRequestsStandsForNothing) {
  const RankPlaceOf worker = {" clock_nanosleep broadcast_queue.acquire_read train.step ",
                              "/x/train.py:30 in step"};
  StandingJob job({kQueue, worker, worker});
  EXPECT_EQ(CulpritsOf(job.Only()), Ranks{0});
  job.standings[0]->has_server = true;
  EXPECT_TRUE(job.Judge().empty());
}

// Ranks that wait in collectives, and rank 0, which reads in some function.
struct DriverCase {
  const char* name;
  RankPlaceOf driver;
  const char* others;
  bool may_idle;
};

constexpr char kInBroadcast[] = " futex c10d::Work::wait distributed_c10d.broadcast engine.follow ";
constexpr char kInReduction[] = " futex c10d::Work::wait distributed_c10d.all_reduce train.step ";
constexpr char kDrives[] = "/x/engine.py:9 in drive";

const DriverCase kDrivers[] = {
    {"datagrams", {" recvfrom engine.drive ", kDrives, {}, EndKind::kSocket}, kInBroadcast, true},
    {"lines",
     {" __recv socket.SocketIO.readinto engine.drive ", kDrives, {9100}, EndKind::kSocket},
     kInBroadcast,
     true},
    {"a_pipe", {" __read engine.drive ", kDrives, {9100}, EndKind::kPipe}, kInBroadcast, true},
    {"messages_of_mpi",
     {" __recv NextRequest main ", kDrives, {}, EndKind::kSocket},
     " PMPI_Bcast main ",
     true},
    {"a_ring",
     {" __recv engine.drive ", kDrives, {}, EndKind::kSocket},
     " clock_nanosleep ring.acquire_read engine.follow ",
     true},
    {"others_that_reduce",
     {" __recv train.load ", kDrives, {}, EndKind::kSocket},
     kInReduction,
     false},
    {"a_download",
     {" __recv client.HTTPResponse.read train.load ", kDrives, {}, EndKind::kSocket},
     kInBroadcast,
     false},
    {"a_rank", {" __recv engine.drive ", kDrives, {4001}, EndKind::kSocket}, kInBroadcast, false},
    {"a_lock", {" __lll_lock_wait pthread_mutex_lock train.save ", kDrives}, kInBroadcast, false},
    {"a_socket_that_is_full",
     {" __send sock_send engine.drive ", kDrives, {}, EndKind::kSocket},
     kInBroadcast,
     false},
};

class DriverTest : public testing::TestWithParam<DriverCase> {
 protected:
  DriverTest() : job_(Places()) {
    // The library's function that the program has called.
    if (std::string(GetParam().name) == "a_socket_that_is_full") {
      job_.standings[0]->place.in.name = "socket.send";
    }
  }
  static std::vector<RankPlaceOf> Places() {
    const RankPlaceOf waits = {GetParam().others, "/x/engine.py:30 in follow"};
    return {GetParam().driver, waits, waits};
  }
  StandingJob job_;
};

TEST_P(DriverTest, NoJobStandsWhoseDriverMayIdle) {
  EXPECT_EQ(job_.Judge().empty(), GetParam().may_idle);
}

TEST_P(DriverTest, TellsThePersonWhoLooksThatItIsPossible) {
  Limits limits;
  limits.is_look = true;
  const std::vector<Verdict> verdicts = Diagnose(job_.state, At(61), limits);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].certainty == Certainty::kPossible, GetParam().may_idle);
}

INSTANTIATE_TEST_SUITE_P(All, DriverTest, testing::ValuesIn(kDrivers),
                         [](const auto& info) { return std::string(info.param.name); });

// Many ranks have a server for metrics.
TEST(StandstillTest, BlamesAnAwaitedRankEvenWithAServer) {
  StandingJob job({Reads(4001), kQueue, Reads(4000)});
  job.standings[1]->has_server = true;
  EXPECT_EQ(CulpritsOf(job.Only()), Ranks{1});
}

TEST(StandstillTest, DoesNotSeeWhatAChildOnAnotherHostWaitsFor) {
  const RankPlaceOf waits = {" wait4 subprocess.wait train.launch ", "/x/train.py:5 in launch"};
  StandingJob job({waits, Reads(4000), Reads(4000)});
  job.standings[0]->children = {{kChildPid, 4000, "rsync", {PlaceOf({" __select main ", ""})}}};
  EXPECT_EQ(CulpritsOf(job.Only()), Ranks{0});
  job.standings[0]->children[0].name = "srun";
  EXPECT_TRUE(job.Judge().empty());
}

TEST(StandstillTest, AThreadThatWaitsForItsGpuIsWork) {
  StandingJob job({Reads(4001), kQueue, Reads(4000)});
  job.standings[1]->threads = {
      {5000, "compute",
       PlaceOf({" cudaStreamSynchronize train.compute ", "/x/train.py:8 in compute"})}};
  EXPECT_TRUE(job.Judge().empty());
}

TEST(StandstillTest, TellsWhereAllWaitInOnePlace) {
  const RankPlaceOf semaphore = {" __new_sem_wait_slow64 TakeTurn main ", "/x/s.c:20 in TakeTurn"};
  const Verdict verdict = StandingJob({semaphore, semaphore, semaphore}).Only();
  EXPECT_TRUE(verdict.culprits.empty());
  EXPECT_EQ(verdict.certainty, Certainty::kPossible);
  EXPECT_EQ(verdict.summary,
            "all 3 ranks stand in `TakeTurn` (s.c:20), and wait in a lock or a semaphore: no rank "
            "moves; 3 ranks have waited 50 s");
}

TEST(StandstillTest, BlamesARankThatHasDied) {
  const RankPlaceOf ring = {" clock_nanosleep q.Ring.acquire_read engine.run ",
                            "/x/q.py:43 in Ring.acquire_read"};
  StandingJob job({ring, ring, ring});
  job.state.processes[2].liveness = Liveness::kDied;
  job.state.processes[2].exit_signal = 9;
  job.state.processes[2].standing = nullptr;
  const Verdict verdict = job.Only();
  EXPECT_EQ(CulpritsOf(verdict), Ranks{2});
  EXPECT_EQ(verdict.advice.front().id, "killed");
}

const RankPlaceOf kReceives = {" __poll zmq_msg_recv train.work ", "/x/train.py:66 in work"};
const RankPlaceOf kSends = {" __poll zmq_msg_send train.hand_out ", "/x/train.py:59 in hand_out"};

void Connect(StandingJob* job, size_t rank, std::vector<int32_t> with, double received_bytes) {
  StandingSockets& sockets = job->standings[rank]->sockets;
  sockets.known = true;
  sockets.with = std::move(with);
  sockets.received_bytes = received_bytes;
}

TEST(StandstillTest, BlamesTheRankWithoutAConnection) {
  StandingJob job({kSends, kReceives, kReceives});
  Connect(&job, 0, {4001}, 90);
  Connect(&job, 1, {4000}, 90);
  const Verdict verdict = job.Only();
  EXPECT_EQ(CulpritsOf(verdict), Ranks{2});
  EXPECT_EQ(verdict.advice.front().id, "lost-message");
}

// Of those that wait for the same rank, it has received less than the others.
TEST(StandstillTest, BlamesTheRankThatLacksAnAnswerAndTheOneThatOwesIt) {
  const RankPlaceOf hub = {" __poll zmq_msg_recv train.answer ", "/x/train.py:25 in answer"};
  StandingJob job({hub, kReceives, kReceives, kReceives});
  Connect(&job, 0, {4001, 4002, 4003}, 400);
  for (const size_t rank : {1, 2, 3}) Connect(&job, rank, {4000}, rank == 2 ? 90 : 97);
  const Verdict verdict = job.Only();
  EXPECT_EQ(CulpritsOf(verdict), (Ranks{0, 2}));
  EXPECT_EQ(verdict.standstill.shape, StandShape::kRing);
  // No rank lacks one: the rank that waits for all is in the middle.
  Connect(&job, 2, {4000}, 97);
  EXPECT_EQ(CulpritsOf(job.Only()), Ranks{0});
  // Somebody else may come with a request.
  job.standings[0]->sockets.listens = true;
  EXPECT_TRUE(job.Judge().empty());
}

// Each of two would answer only after its own question, and a third one waits for one of them.
TEST(StandstillTest, BlamesTheTwoThatHaveAskedEachOther) {
  StandingJob job({kReceives, kReceives, kReceives});
  Connect(&job, 0, {4001, 4002}, 400);
  Connect(&job, 1, {4000}, 200);
  Connect(&job, 2, {4000}, 90);
  for (const size_t rank : {1, 2}) job.standings[rank]->sockets.called = {4000};
  EXPECT_EQ(CulpritsOf(job.Only()), (Ranks{0, 2})) << "rank 2 may lack an answer";
  job.standings[0]->sockets.called = {4001};
  const Verdict verdict = job.Only();
  EXPECT_EQ(CulpritsOf(verdict), (Ranks{0, 1}));
  EXPECT_EQ(verdict.standstill.shape, StandShape::kRing);
  // It may have asked all of them.
  job.standings[0]->sockets.called = {4001, 4002};
  EXPECT_EQ(CulpritsOf(job.Only()), (Ranks{0, 2}));
}

// Two that wait for messages of each other may do so because one was lost.
TEST(StandstillTest, OfRanksThatAllReceiveNoneIsLikely) {
  const RankPlaceOf hub = {" __poll zmq_msg_recv train.answer ", "/x/train.py:25 in answer"};
  EXPECT_EQ(StandingJob({hub, kReceives, kReceives}).Only().certainty, Certainty::kPossible);
}

const RankPlaceOf kAsks = {" epoll_wait _channel._UnaryUnaryMultiCallable.__call__ train.ask ",
                           "/x/train.py:27 in ask"};

TEST(StandstillTest, BlamesServersThatAskEachOther) {
  StandingJob job({kAsks, kAsks, kAsks});
  const int32_t asked[] = {4001, 4000, 4000};
  for (size_t i = 0; i < 3; ++i) job.standings[i]->sockets.called = {asked[i]};
  const Verdict verdict = job.Only();
  EXPECT_EQ(CulpritsOf(verdict), (Ranks{0, 1}));
  EXPECT_EQ(verdict.advice.front().id, "ask-the-other-end");
  EXPECT_EQ(
      verdict.summary,
      "ranks 0-1 (node, pids 4000, 4001) are in `ask` (train.py:27) and wait for each other, "
      "rank 0 for rank 1 and rank 1 for rank 0, in gRPC, and rank 2 waits for them, in gRPC: no "
      "rank moves; 1 rank has waited 50 s");
}

// Its own call is one of those that the handler does not answer.
TEST(StandstillTest, BlamesTheRankWhoseHandlerStands) {
  StandingJob job({kAsks, kAsks, kAsks});
  for (const size_t i : {0, 2}) job.standings[i]->sockets.called = {4001};
  job.standings[1]->threads = {
      {4100, "worker",
       PlaceOf({" __new_sem_wait_slow64 queue.Queue.get train.handle thread._WorkItem.run "
                "thread._worker ",
                "/x/train.py:57 in handle"})}};
  const Verdict verdict = job.Only();
  EXPECT_EQ(CulpritsOf(verdict), Ranks{1});
  ASSERT_EQ(verdict.places.size(), 1u);
  EXPECT_EQ(verdict.places[0].at, "/x/train.py:57 in handle");
  EXPECT_EQ(verdict.advice.front().id, "waits-for-a-thread");
  // One that sleeps in its work goes on.
  job.standings[1]->threads[0].place =
      PlaceOf({" clock_nanosleep time.sleep train.handle thread._WorkItem.run thread._worker ",
               "/x/train.py:58 in handle"});
  EXPECT_TRUE(job.Judge().empty());
}

// A worker of rank 0's data loader has a copy of the socket at which rank 0 waits for a thread of
// its own.
TEST(StandstillTest, BlamesNoChildThatOnlyHasACopyOfASocket) {
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

// One that rank 0 has started, with a session of its own.
struct ServiceJob : StandingJob {
  explicit ServiceJob(const RankPlaceOf& service)
      : StandingJob({Reads(kChildPid), Reads(kChildPid), Reads(kChildPid)}) {
    standings[0]->children = {{kChildPid, 4000, "python", {PlaceOf(service)}, true}};
  }
};

TEST(StandstillTest, TellsOfAServiceForWhichAllWait) {
  const RankPlaceOf event = {" __new_sem_wait_slow64 threading.Event.wait service.main ",
                             "/x/service.py:9 in main"};
  ServiceJob job(event);
  const Verdict verdict = job.Only();
  EXPECT_TRUE(verdict.culprits.empty());
  EXPECT_EQ(verdict.certainty, Certainty::kPossible);
  EXPECT_EQ(verdict.advice.front().id, "ask-the-other-end");
  EXPECT_EQ(
      verdict.summary,
      "all 3 ranks stand in `receive` (train.py:42), and wait for process 9000 (python), in a "
      "socket: no rank moves; 3 ranks have waited 50 s");
  // It may answer in an unseen thread.
  job.standings[0]->children[0].hides_a_wait = true;
  EXPECT_TRUE(job.Judge().empty());
  EXPECT_TRUE(ServiceJob(kServes).Judge().empty());
  // It waits for rank 0, and rank 0 for it.
  const Verdict pair = ServiceJob(Reads(4000)).Only();
  EXPECT_EQ(CulpritsOf(pair), Ranks{0});
  EXPECT_EQ(pair.certainty, Certainty::kPossible);
}

// The launcher has started it.
TEST(StandstillTest, TellsOfAServiceThatNoRankHasStarted) {
  StandingJob job({Reads(812), Reads(812)});
  const StandPlace lock =
      PlaceOf({" __new_sem_wait_slow64 PyThread_acquire_lock_timed service.answer ",
               "/x/service.py:9 in answer"});
  for (const auto& standing : job.standings) standing->others = {{812, 7, "python", {lock}}};
  const Verdict verdict = job.Only();
  EXPECT_EQ(verdict.standstill.shape, StandShape::kOutside);
  EXPECT_EQ(verdict.standstill.others, "process 812 (python)");
  // It waits for a rank itself.
  for (const auto& standing : job.standings) {
    standing->others[0].places = {
        PlaceOf({" __recv service.ask ", "/x/service.py:7 in ask", {4001}, EndKind::kSocket})};
  }
  EXPECT_EQ(CulpritsOf(job.Only()), (Ranks{1}));
}

// The ranks wait for what it broadcasts, and it for an answer of rank 0.
TEST(StandstillTest, BlamesTheRankWhoseSchedulerWaits) {
  const RankPlaceOf ring = {" clock_nanosleep q.Ring.acquire_read engine.run ",
                            "/x/q.py:43 in Ring.acquire_read"};
  StandingJob job({ring, ring, ring});
  job.standings[0]->children = {
      {kChildPid,
       4000,
       "python",
       {PlaceOf({" read engine.step ", "/x/engine.py:48 in step", {4000}, EndKind::kPipe})}}};
  job.standings[0]->threads = {
      {4100, "client", PlaceOf({" __recv engine.ask ", "/x/engine.py:80 in ask", {kChildPid}})}};
  const Verdict verdict = job.Only();
  EXPECT_EQ(CulpritsOf(verdict), Ranks{0});
  EXPECT_EQ(verdict.standstill.shape, StandShape::kOwnServer);
  EXPECT_EQ(verdict.advice.front().id, "lost-message");
  EXPECT_EQ(
      verdict.summary,
      "child process 9000 (python) of rank 0 (node, pid 4000) is in `step` (engine.py:48) and "
      "waits in a pipe, its parent waits in a broadcast queue in shared memory, and ranks 1-2 "
      "wait in a broadcast queue in shared memory: no rank moves; 2 ranks have waited 50 s");
}

TEST(StandstillTest, TheCpuThatMpiUsesIsAWait) {
  const RankPlaceOf window = {" opal_progress PMPI_Win_lock train.count ",
                              "/x/train.py:29 in count"};
  const Verdict verdict = StandingJob({window, kQueue, window}).Only();
  EXPECT_EQ(CulpritsOf(verdict), Ranks{1});
  // The process that they spawn may work.
  const RankPlaceOf spawn = {" opal_progress PMPI_Comm_spawn train.run ", "/x/train.py:82 in run"};
  EXPECT_TRUE(StandingJob({spawn, spawn}).Judge().empty());
}

// The task asks for a resource that no node has: no worker runs it.
TEST(StandstillTest, SaysThatNoProcessMakesAResultOfRay) {
  const RankPlaceOf asks = {
      " pthread_cond_timedwait ray::core::CoreWorker::Get worker.get "
      "train.evaluate function_manager.actor_method_executor "
      "worker.Worker.main_loop ",
      "/x/train.py:32 in evaluate"};
  StandingJob job({asks, asks, asks});
  for (const size_t i : {0, 2}) {
    job.standings[i]->sockets.called = {4001};
    job.standings[i]->newest.threads.begin()->second.position = 7;
  }
  job.standings[1]->sockets.called = {812, 813};
  job.standings[1]->names = {{812, "gcs_server"}, {813, "ray::IDLE"}};
  const Verdict verdict = job.Only();
  EXPECT_EQ(CulpritsOf(verdict), Ranks{1});
  EXPECT_EQ(verdict.advice.front().id, "nobody-makes-it");
  job.standings[1]->names[813] = "ray::count";
  EXPECT_EQ(job.Only().advice.front().id, "ask-the-other-end");
}

// Its main thread is in Ray's loop, and another one executes the stages.
TEST(StandstillTest, BlamesTheStageOfAGraphThatStands) {
  const RankPlaceOf actor = {" __futex worker.Worker.main_loop ", ""};
  StandingJob job({actor, actor, actor});
  const StandPlace reads =
      PlaceOf({" sem_timedwait shared_memory_channel.Channel.read "
               "compiled_dag_node.ExecutableTask._read compiled_dag_node.do_exec_tasks ",
               ""});
  const StandPlace stands =
      PlaceOf({" __new_sem_wait_slow64 queue.Queue.get train.stage "
               "compiled_dag_node.ExecutableTask._compute compiled_dag_node.do_exec_tasks ",
               "/x/train.py:40 in stage"});
  for (const size_t i : {0, 1, 2}) {
    job.standings[i]->threads = {{4100, "ray", i == 1 ? stands : reads}};
    const int32_t pid = job.state.processes[i].pid;
    job.standings[i]->newest.threads[{pid, 4100}].position = i == 1 ? 7 : 8;
  }
  const Verdict verdict = job.Only();
  EXPECT_EQ(CulpritsOf(verdict), Ranks{1});
  EXPECT_EQ(verdict.places.at(0).at, "/x/train.py:40 in stage");
  EXPECT_EQ(verdict.advice.front().id, "waits-for-a-thread");
}

// No incident, whatever the ranks wait in.
TEST(StandstillTest, LeavesAloneWhatMayGoOn) {
  const RankPlaceOf ring = {" clock_nanosleep q.Ring.acquire_read engine.run ",
                            "/x/q.py:43 in Ring.acquire_read"};
  const RankPlaceOf prompt = {" read PyOS_Readline builtin_input train.ask ", "/x/t.py:3 in ask"};
  const RankPlaceOf gpu = {" poll cuStreamSynchronize train.step ", "/x/t.py:3 in step"};
  const RankPlaceOf sleeps = {" clock_nanosleep train.pause ", "/x/t.py:9 in pause"};
  const std::pair<const char*, std::vector<RankPlaceOf>> jobs[] = {
      {"workers without work", {ring, ring, ring}},
      {"readers of one server", {kServes, Reads(4000), Reads(4000)}},
      {"a person", {Reads(4001), prompt}},
      {"a GPU", {Reads(4001), gpu}},
      {"all sleep", {sleeps, sleeps}},
      {"one rank", {kQueue}},
      {"readers of a process of which nothing is known", {Reads(812), Reads(812)}},
  };
  for (const auto& [name, places] : jobs) EXPECT_TRUE(StandingJob(places).Judge().empty()) << name;
}

TEST(StandstillTest, WaitsUntilAllHaveStoodForLong) {
  using Change = void (*)(StandingJob*);
  const std::pair<const char*, Change> changes[] = {
      {"a rank moves", [](StandingJob* job) { job->standings[2]->since_ns = At(55); }},
      {"a rank rests", [](StandingJob* job) { job->standings[2]->rests = true; }},
      {"an old sample", [](StandingJob* job) { job->standings[2]->newest_ns = At(20); }},
      {"no sample", [](StandingJob* job) { job->state.processes[2].standing = nullptr; }},
      {"stopped", [](StandingJob* job) { job->state.processes[2].state = 'T'; }},
      {"in a debugger", [](StandingJob* job) { job->state.processes[2].traced = true; }},
  };
  for (const auto& [name, change] : changes) {
    StandingJob job({Reads(4001), kQueue, Reads(4000)});
    change(&job);
    EXPECT_TRUE(job.Judge().empty()) << name;
  }
}

// One that MPI has spawned has a rank of its own.
TEST(StandstillTest, AnotherProcessWithTheNumberOfARankMayWork) {
  StandingJob job({Reads(4001), kQueue, Reads(4000)});
  Process spawned = job.state.processes[0];
  spawned.pid = 4400;
  spawned.start_time += 1;
  spawned.standing = nullptr;
  spawned.quiet_since_ns = At(5);
  job.state.processes.push_back(spawned);
  EXPECT_FALSE(job.Judge().empty());
  job.state.processes.back().quiet_since_ns = At(60);
  EXPECT_TRUE(job.Judge().empty());
  // It uses little of the CPU, but moves.
  job.state.processes.back().quiet_since_ns = At(5);
  auto moves = std::make_shared<Standing>();
  moves->since_ns = At(59);
  job.state.processes.back().standing = moves;
  EXPECT_TRUE(job.Judge().empty());
  // It sleeps in a loop: it may compute a little each time.
  auto sleeps = std::make_shared<Standing>();
  sleeps->since_ns = At(10);
  sleeps->place = PlaceOf({" clock_nanosleep time.sleep train.main ", "/x/train.py:9 in main"});
  job.state.processes.back().standing = sleeps;
  EXPECT_TRUE(job.Judge().empty());
}

struct JobAtBarriers : StandingJob {
  explicit JobAtBarriers(const std::vector<std::string>& names)
      : StandingJob(std::vector<RankPlaceOf>(
            names.size(), {" syscall CoordinationServiceAgent::WaitAtBarrier train.meet ",
                           "/x/train.py:9 in meet"})) {
    for (size_t i = 0; i < names.size(); ++i) standings[i]->place.key = names[i];
  }
};

TEST(StandstillTest, BlamesTheRankAtABarrierOfAnotherName) {
  const Verdict verdict = JobAtBarriers({"saved-4", "saved-5", "saved-4"}).Only();
  EXPECT_EQ(CulpritsOf(verdict), Ranks{1});
  EXPECT_EQ(verdict.certainty, Certainty::kLikely);
  EXPECT_EQ(verdict.advice.front().id, "lacking-party");
  EXPECT_EQ(verdict.summary,
            "rank 1 (node, pid 4001) is in `meet` (train.py:9) and waits in a barrier of JAX's "
            "coordination service named \"saved-5\", and ranks 0,2 wait in one of another name: no "
            "rank moves; 2 ranks have waited 50 s");
}

// What a barrier lacks may be the rank that has ended.
TEST(StandstillTest, BlamesTheEndedRankAndNoneAtAnotherBarrier) {
  JobAtBarriers job({"saved-4", "saved-5", "saved-4", "saved-4"});
  EndWell(&job.state.processes[3]);
  const Verdict verdict = job.Only();
  EXPECT_EQ(CulpritsOf(verdict), Ranks{3});
  EXPECT_EQ(verdict.awaited_key, "");
  EXPECT_EQ(verdict.summary.find("another name"), std::string::npos) << verdict.summary;
}

TEST(StandstillTest, BlamesNoRankIfTheNamesOfBarriersDecideNothing) {
  const std::vector<std::string> jobs[] = {
      {"saved-4", "saved-5"}, {"saved-4", "", "saved-4"}, {"saved-4", "saved-4", "saved-4"}};
  for (const auto& names : jobs) {
    const Verdict verdict = JobAtBarriers(names).Only();
    EXPECT_TRUE(verdict.culprits.empty());
    EXPECT_EQ(verdict.awaited_key,
              names.front() == names.back() && names[1] == names[0] ? "saved-4" : "");
  }
}

TEST(StandstillTest, TheWatchOnCallsOnlyJudgesNone) {
  const StandingJob job({Reads(4001), kQueue, Reads(4000)});
  Limits limits;
  limits.watches_calls_only = true;
  EXPECT_TRUE(Diagnose(job.state, At(61), limits).empty());
}

}  // namespace
}  // namespace rollcall
