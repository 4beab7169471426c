// SPDX-License-Identifier: Apache-2.0
// Standstills of servers and services, and servers without requests, which do not stand.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "standing_job.h"

namespace rollcall {
namespace {

TEST(StandServersTest, AScriptThatWaitsForAServerWithoutRequestsStandsForNothing) {
  const RankPlaceOf waits = {" wait4 main ", "", {kChildPid}, EndKind::kProcess};
  StandingJob job({waits, waits});
  for (size_t i = 0; i < 2; ++i) {
    job.standings[i]->children = {
        {kChildPid, 4000 + static_cast<int32_t>(i), "python", {PlaceOf(kServes)}}};
  }
  EXPECT_TRUE(job.Judge().empty());
}

// Its scheduler waits for requests in a queue, and its workers for the scheduler.
TEST(StandServersTest, AnEngineWithoutRequestsStandsForNothing) {
  const RankPlaceOf worker = {" clock_nanosleep broadcast_queue.acquire_read train.step ",
                              "/x/train.py:30 in step"};
  StandingJob job({kQueue, worker, worker});
  EXPECT_EQ(CulpritsOf(job.Only()), Ranks{0});
  job.standings[0]->has_server = true;
  EXPECT_TRUE(job.Judge().empty());
}

// Ray's library has threads that wait for requests, and the task of a compiled graph is a request.
TEST(StandServersTest, BlamesAStageOfAGraphEvenWithAServer) {
  const RankPlaceOf waits = {
      " sched_yield shared_memory_channel.Channel.read compiled_dag_node.do_exec_tasks ", ""};
  const RankPlaceOf stands = {
      " __new_sem_wait_slow64 queue.Queue.get train.load compiled_dag_node.do_exec_tasks ",
      kQueue.at};
  StandingJob job({waits, stands, waits});
  job.standings[1]->has_server = true;
  EXPECT_EQ(CulpritsOf(job.Only()), Ranks{1});
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
TEST(StandServersTest, BlamesAnAwaitedRankEvenWithAServer) {
  StandingJob job({Reads(4001), kQueue, Reads(4000)});
  job.standings[1]->has_server = true;
  EXPECT_EQ(CulpritsOf(job.Only()), Ranks{1});
}

// One that rank 0 has started, with a session of its own.
struct ServiceJob : StandingJob {
  explicit ServiceJob(const RankPlaceOf& service)
      : StandingJob({Reads(kChildPid), Reads(kChildPid), Reads(kChildPid)}) {
    standings[0]->children = {{kChildPid, 4000, "python", {PlaceOf(service)}, true}};
  }
};

TEST(StandServersTest, TellsOfAServiceForWhichAllWait) {
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
TEST(StandServersTest, TellsOfAServiceThatNoRankHasStarted) {
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
TEST(StandServersTest, BlamesTheRankWhoseSchedulerWaits) {
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

}  // namespace
}  // namespace rollcall
