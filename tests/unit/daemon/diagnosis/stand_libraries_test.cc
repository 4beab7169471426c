// SPDX-License-Identifier: Apache-2.0
// Standstills in libraries: stores, ZeroMQ, gRPC, HTTP, MPI, Ray, JAX.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "standing_job.h"

namespace rollcall {
namespace {

TEST(StandLibrariesTest, TheProcessWithTheServerOfAStoreDoesNotSetItsKeys) {
  const auto in_store = [](std::vector<int32_t> server) {
    return RankPlaceOf{" poll c10d::TCPStore::doWait c10d::TCPStore::wait train.meet ",
                       "/x/train.py:5 in meet", std::move(server), EndKind::kSocket};
  };
  const Verdict verdict =
      StandingJob({in_store({}), in_store({4000}), in_store({4000}), kQueue}).Only();
  EXPECT_EQ(CulpritsOf(verdict), Ranks{3});
}

const RankPlaceOf kReceives = {" __poll zmq_msg_recv train.work ", "/x/train.py:66 in work"};
const RankPlaceOf kSends = {" __poll zmq_msg_send train.hand_out ", "/x/train.py:59 in hand_out"};

void Connect(StandingJob* job, size_t rank, std::vector<int32_t> with, double received_bytes) {
  StandingSockets& sockets = job->standings[rank]->sockets;
  sockets.known = true;
  sockets.with = std::move(with);
  sockets.received_bytes = received_bytes;
}

TEST(StandLibrariesTest, BlamesTheRankWithoutAConnection) {
  StandingJob job({kSends, kReceives, kReceives});
  Connect(&job, 0, {4001}, 90);
  Connect(&job, 1, {4000}, 90);
  const Verdict verdict = job.Only();
  EXPECT_EQ(CulpritsOf(verdict), Ranks{2});
  EXPECT_EQ(verdict.advice.front().id, "lost-message");
}

// Of those that wait for the same rank, it has received less than the others.
TEST(StandLibrariesTest, BlamesTheRankThatLacksAnAnswerAndTheOneThatOwesIt) {
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
TEST(StandLibrariesTest, BlamesTheTwoThatHaveAskedEachOther) {
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
TEST(StandLibrariesTest, OfRanksThatAllReceiveNoneIsLikely) {
  const RankPlaceOf hub = {" __poll zmq_msg_recv train.answer ", "/x/train.py:25 in answer"};
  EXPECT_EQ(StandingJob({hub, kReceives, kReceives}).Only().certainty, Certainty::kPossible);
}

const RankPlaceOf kAsks = {" epoll_wait _channel._UnaryUnaryMultiCallable.__call__ train.ask ",
                           "/x/train.py:27 in ask"};

TEST(StandLibrariesTest, BlamesServersThatAskEachOther) {
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
TEST(StandLibrariesTest, BlamesTheRankWhoseHandlerStands) {
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

// Two ranks that serve HTTP ask each other.
TEST(StandLibrariesTest, AnAnswerThatAnotherRankOwesIsNoDownload) {
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

// MPI's calls are recorded: what a rank owes there, the messages show.
TEST(StandLibrariesTest, FindsNoStandstillIfARankRestsWhileOthersWaitInMpi) {
  const RankPlaceOf recv = {" poll ompi_request_default_wait PMPI_Recv main ",
                            "/x/pool.c:40 in main"};
  const RankPlaceOf rests = {" clock_nanosleep sleep main ", "/x/pool.c:52 in main"};
  EXPECT_TRUE(StandingJob({recv, rests, recv}).Judge().empty());
  const RankPlaceOf locks = {" __lll_lock_wait pthread_mutex_lock main ", "/x/pool.c:52 in main"};
  EXPECT_EQ(CulpritsOf(StandingJob({recv, locks, recv}).Only()), Ranks{1});
}

TEST(StandLibrariesTest, TheCpuThatMpiUsesIsAWait) {
  const RankPlaceOf window = {" opal_progress PMPI_Win_lock train.count ",
                              "/x/train.py:29 in count"};
  const Verdict verdict = StandingJob({window, kQueue, window}).Only();
  EXPECT_EQ(CulpritsOf(verdict), Ranks{1});
  // The process that they spawn may work.
  const RankPlaceOf spawn = {" opal_progress PMPI_Comm_spawn train.run ", "/x/train.py:82 in run"};
  EXPECT_TRUE(StandingJob({spawn, spawn}).Judge().empty());
}

// The task asks for a resource that no node has: no worker runs it.
TEST(StandLibrariesTest, SaysThatNoProcessMakesAResultOfRay) {
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
TEST(StandLibrariesTest, BlamesTheStageOfAGraphThatStands) {
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

struct JobAtBarriers : StandingJob {
  explicit JobAtBarriers(const std::vector<std::string>& names)
      : StandingJob(std::vector<RankPlaceOf>(
            names.size(), {" syscall CoordinationServiceAgent::WaitAtBarrier train.meet ",
                           "/x/train.py:9 in meet"})) {
    for (size_t i = 0; i < names.size(); ++i) standings[i]->place.key = names[i];
  }
};

TEST(StandLibrariesTest, BlamesTheRankAtABarrierOfAnotherName) {
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
TEST(StandLibrariesTest, BlamesTheEndedRankAndNoneAtAnotherBarrier) {
  JobAtBarriers job({"saved-4", "saved-5", "saved-4", "saved-4"});
  EndWell(&job.state.processes[3]);
  const Verdict verdict = job.Only();
  EXPECT_EQ(CulpritsOf(verdict), Ranks{3});
  EXPECT_EQ(verdict.awaited_key, "");
  EXPECT_EQ(verdict.summary.find("another name"), std::string::npos) << verdict.summary;
}

TEST(StandLibrariesTest, BlamesNoRankIfTheNamesOfBarriersDecideNothing) {
  const std::vector<std::string> jobs[] = {
      {"saved-4", "saved-5"}, {"saved-4", "", "saved-4"}, {"saved-4", "saved-4", "saved-4"}};
  for (const auto& names : jobs) {
    const Verdict verdict = JobAtBarriers(names).Only();
    EXPECT_TRUE(verdict.culprits.empty());
    EXPECT_EQ(verdict.awaited_key,
              names.front() == names.back() && names[1] == names[0] ? "saved-4" : "");
  }
}

}  // namespace
}  // namespace rollcall
