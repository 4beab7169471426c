// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/waits/idle_servers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "daemon/diagnosis/life/incident_life.h"
#include "daemon/model/waits/idle_loops.h"
#include "job_builder.h"

namespace rollcall {
namespace {

// Functions of a thread, innermost first.
struct LoopCase {
  const char* name;
  const char* functions;
  bool is_idle;
};

const LoopCase kCases[] = {
    {"http_server",
     " __poll select_poll_poll selectors._PollLikeSelector.select "
     "socketserver.BaseServer.serve_forever server.main server.<module> ",
     true},
    {"http_server_of_python_3_10", " poll selectors.select socketserver.serve_forever server.main ",
     true},
    {"http_server_in_a_handler",
     " __select time_sleep server.Handler.do_GET server.BaseHTTPRequestHandler.handle_one_request "
     "server.BaseHTTPRequestHandler.handle socketserver.BaseRequestHandler.__init__ "
     "socketserver.BaseServer.finish_request socketserver.BaseServer.process_request "
     "socketserver.BaseServer._handle_request_noblock socketserver.BaseServer.serve_forever "
     "server.main ",
     false},
    {"asyncio",
     " epoll_wait select_epoll_poll selectors.EpollSelector.select "
     "base_events.BaseEventLoop._run_once base_events.BaseEventLoop.run_forever "
     "base_events.BaseEventLoop.run_until_complete runners.Runner.run runners.run server.main ",
     true},
    {"asyncio_in_a_callback",
     " __sched_yield server.generate events.Handle._run base_events.BaseEventLoop._run_once "
     "base_events.BaseEventLoop.run_forever runners.run server.main ",
     false},
    {"uvloop", " epoll_pwait uv__io_poll uv_run __pyx_f_6uvloop_4loop_4Loop___run server.main ",
     true},
    {"grpc",
     " lock_PyThread_acquire_lock threading.Condition.wait _common._wait_once _common.wait "
     "_server._Server.wait_for_termination server.serve ",
     true},
    {"gradio",
     " clock_nanosleep __clock_nanosleep time_sleep blocks.Blocks.block_thread "
     "blocks.Blocks.launch server.main server.<module> ",
     true},
    {"gradio_before_it_serves",
     " poll time_sleep networking.url_ok blocks.Blocks.launch server.main ", false},
    {"accept", " accept4 sock_accept socket.socket.accept server.loop ", true},
    {"accept_in_cpp", " __libc_accept accept ServeForever main ", true},
    {"asio",
     " epoll_wait boost::asio::detail::epoll_reactor::run "
     "boost::asio::detail::scheduler::do_run_one boost::asio::detail::scheduler::run main ",
     true},
    {"asio_in_a_handler", " read service::Handle boost::asio::detail::scheduler::run main ", false},
    {"libevent_in_a_handler", " read handle_request event_process_active event_base_loop main ",
     false},
    {"libevent", " epoll_wait epoll_dispatch event_base_loop main ", true},
    {"a_queue_of_the_program", " futex queue.Queue.get server.next_request server.main ", false},
    {"an_answer_of_another_server",
     " recv sock_recv ssl.SSLSocket.recv_into client.HTTPResponse.read train.main ", false},
};

class IdleLoopTest : public testing::TestWithParam<LoopCase> {};

TEST_P(IdleLoopTest, IsFoundByWhatStandsInside) {
  EXPECT_EQ(FindIdleLoop(GetParam().functions) != nullptr, GetParam().is_idle);
}

INSTANTIATE_TEST_SUITE_P(All, IdleLoopTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// Rank 0 serves, and the others wait in the broadcast of the next work.
class IdleServerTest : public testing::Test {
 protected:
  IdleServerTest() {
    job_.Finish(12);
    job_.Enter({1, 2, 3}, At(10), Broadcast());
    job_.process(0).place = {"/x/server.py:9 in main", "BaseServer.serve_forever", true,
                             kCases[0].functions};
    job_.process(0).thread_places = {{4000, "python", job_.process(0).place}};
    job_.process(0).stacks_ns = At(30);
  }
  Verdict Judge() {
    const std::vector<Verdict> verdicts = Diagnose(job_.state, At(80), Limits());
    EXPECT_EQ(verdicts.size(), 1u);
    return verdicts.empty() ? Verdict() : verdicts[0];
  }
  void AddThread(const char* functions) {
    job_.process(0).thread_places.push_back(
        {4001, "", {"/x/server.py:20 in do_GET", "", true, functions}});
  }
  JobBuilder job_{4};
};

TEST_F(IdleServerTest, AServerWithoutRequestsIsNotAHang) {
  const Verdict v = Judge();
  EXPECT_EQ(v.certainty, Certainty::kPossible);
  EXPECT_EQ(
      v.summary,
      "rank 0 (node-0, pid 4000) is in `main` (server.py:9), waiting in BaseServer.serve_forever, "
      "and waits for requests, and the others wait for Broadcast #12 on communicator \"dp\": if "
      "this server is idle, the job does not hang; 3 ranks have waited 70 s");
  EXPECT_EQ(v.advice.front().id, "idle-server");
}

// Rank 0 serves, rank 1 waits for it, and rank 2 for rank 1.
TEST(IdlePipelineTest, NoWaitIsConfirmedThatOnlyAnIdleServerExplains) {
  JobBuilder job(3);
  job.AddCommunicator(1, "tp", {0, 1});
  job.AddCommunicator(2, "pp", {1, 2});
  job.On(1);
  job.Enter({1}, At(10), Broadcast());
  job.On(2);
  job.Enter({1}, At(11));
  job.On(1);
  job.process(0).place = {"/x/server.py:9 in main", "BaseServer.serve_forever", true,
                          kCases[0].functions};
  job.process(0).thread_places = {{4000, "python", job.process(0).place}};
  job.process(0).stacks_ns = At(30);
  IncidentLife life(job.state.key);
  size_t most_verdicts = 0;
  for (int seconds = 30; seconds < 600; seconds += 10) {
    const int64_t now_ns = At(seconds);
    const std::vector<Verdict> verdicts = Diagnose(job.state, now_ns, Limits());
    most_verdicts = std::max(most_verdicts, verdicts.size());
    for (const IncidentEvent& event :
         life.Update(job.state, verdicts, now_ns, Limits(), View::kWhole)) {
      EXPECT_NE(event.kind, IncidentEvent::Kind::kConfirmed);
    }
  }
  EXPECT_EQ(most_verdicts, 2u);
}

TEST_F(IdleServerTest, NoIncidentIsConfirmed) {
  IncidentLife life(job_.state.key);
  for (int seconds = 30; seconds < 600; seconds += 10) {
    const int64_t now_ns = At(seconds);
    for (const IncidentEvent& event : life.Update(
             job_.state, Diagnose(job_.state, now_ns, Limits()), now_ns, Limits(), View::kWhole)) {
      EXPECT_NE(event.kind, IncidentEvent::Kind::kConfirmed);
    }
  }
}

TEST_F(IdleServerTest, AHandlerAtWorkMayHang) {
  AddThread(
      " futex lock.acquire server.do_GET socketserver.ThreadingMixIn.process_request_thread ");
  EXPECT_EQ(Judge().certainty, Certainty::kCertain);
}

TEST_F(IdleServerTest, AThreadThatHandlesNoRequestSaysNothing) {
  AddThread(" select time_sleep metrics.push threading.Thread.run ");
  EXPECT_TRUE(Judge().is_idle);
}

Verdict OnlyVerdict(const JobBuilder& job) {
  const std::vector<Verdict> verdicts = Diagnose(job.state, At(80), Limits());
  EXPECT_EQ(verdicts.size(), 1u);
  return verdicts.empty() ? Verdict() : verdicts[0];
}

// Rank 0 of gloo's group has brought the others `requests` requests, and stands still.
Verdict JudgeScheduler(int requests, CallArgs first = Broadcast(), Motion motion = Motion::kFrozen,
                       const char* waits_in = "Queue.get", char state = 'S') {
  JobBuilder job(4);
  job.process(0).motion = motion;
  job.process(0).state = state;
  job.process(0).place = {"/x/engine.py:9 in main", waits_in, true, " zmq main "};
  job.process(0).stacks_ns = At(30);
  job.comm().kind = CommKind::kGloo;
  if (requests > 0) job.Finish(1, first);
  if (requests > 1) job.Finish(requests - 1, Broadcast());
  job.Enter({1, 2, 3}, At(10), Broadcast());
  return OnlyVerdict(job);
}

TEST(RequestsByGlooTest, ARankThatOnlyBringsRequestsMayIdle) {
  for (const char* waits_in : {"Queue.get", "Poller.poll", "time.sleep", "select", "Event.wait",
                               "ListCommands.blpop", "StreamCommands.xreadgroup"}) {
    EXPECT_TRUE(JudgeScheduler(4, Broadcast(), Motion::kFrozen, waits_in).is_idle) << waits_in;
  }
  EXPECT_FALSE(JudgeScheduler(3).is_idle);
}

// As rank 0 that hands out the batches of a training job.
TEST(RequestsByGlooTest, OneThatStandsWhereNoRequestComesHangs) {
  for (const char* waits_in : {"", "lock.acquire", "open", "Popen.wait", "Thread.join", "budget"}) {
    EXPECT_FALSE(JudgeScheduler(4, Broadcast(), Motion::kFrozen, waits_in).is_idle) << waits_in;
  }
  EXPECT_FALSE(JudgeScheduler(4, Broadcast(), Motion::kFrozen, "get", 'D').is_idle);
}

TEST(RequestsByGlooTest, MayIdleIfAnotherProcessBringsTheWork) {
  EXPECT_TRUE(JudgeScheduler(0, {}, Motion::kFrozen, "Socket.recv_multipart").is_idle);
  EXPECT_TRUE(JudgeScheduler(1, Broadcast(), Motion::kFrozen, "Connection.recv").is_idle);
  EXPECT_FALSE(JudgeScheduler(1, Broadcast(), Motion::kFrozen, "Queue.get").is_idle);
  EXPECT_FALSE(JudgeScheduler(1, AllReduce(), Motion::kFrozen, "Socket.recv").is_idle);
}

// Rank 0 has handed out work by broadcasts alone, and reads in whatever function.
struct ReadCase {
  const char* name;
  const char* inside;
  const char* functions;
  EndKind end;
  std::vector<int32_t> other_end;  // the ranks have pids from 4000 on
  bool may_idle;
};

const ReadCase kReads[] = {
    {"datagrams", "recvfrom", " recvfrom engine.main ", EndKind::kSocket, {}, true},
    {"lines_of_a_socket",
     "SocketIO.readinto",
     " __recv socket.SocketIO.readinto engine.main ",
     EndKind::kSocket,
     {9000},
     true},
    {"a_pipe", "os.read", " __read engine.next_line engine.main ", EndKind::kPipe, {9000}, true},
    {"a_function_of_c", "", " __recv NextRequest main ", EndKind::kSocket, {}, true},
    {"a_library_of_its_own",
     "Bus.next",
     " __recvmsg bus.Bus.next engine.main ",
     EndKind::kSocket,
     {},
     true},
    {"datagrams_where_the_kernel_tells_no_more",
     "recvfrom",
     " recvfrom engine.main ",
     EndKind::kNone,
     {},
     true},
    {"a_rank_of_the_job", "recv", " __recv engine.main ", EndKind::kSocket, {4002}, false},
    {"what_launcher_and_rank_have_open",
     "recv",
     " __recv engine.main ",
     EndKind::kSocket,
     {4002, 9000},
     true},
    {"a_child", "os.read", " __read engine.main <pipe_of_a_child> ", EndKind::kPipe, {}, false},
    {"the_output_of_a_command",
     "Popen.communicate",
     " __poll selectors.PollSelector.select subprocess.Popen.communicate engine.main ",
     EndKind::kPipe,
     {},
     false},
    {"a_download",
     "request.urlopen",
     " __recv client.HTTPResponse._read_status request.urlopen train.main ",
     EndKind::kSocket,
     {},
     false},
    {"a_connection_that_is_not_there_yet",
     "create_connection",
     " __connect socket.create_connection train.main ",
     EndKind::kSocket,
     {},
     false},
    {"a_socket_that_nobody_empties",
     "sendall",
     " __send sock_sendall train.main ",
     EndKind::kSocket,
     {},
     false},
    {"a_file", "io.read", " __read io.read train.main ", EndKind::kNone, {}, false},
    {"a_terminal",
     "input",
     " __read PyOS_Readline builtin_input train.main ",
     EndKind::kSocket,
     {},
     false},
};

class ReadTest : public testing::TestWithParam<ReadCase> {
 protected:
  static CallArgs MpiBroadcast() { return {Op::kMPI_Bcast, kNoDtype, kNoReduction, 0, 4}; }
  // The others wait in the next call; `is_inside`: in the newest one of rank 0.
  static Verdict Judge(CommKind kind, CallArgs args, bool is_inside = false) {
    const ReadCase& read = GetParam();
    JobBuilder job(4);
    StackPlace place = {"/x/engine.py:9 in main", read.inside, true, read.functions};
    place.end = read.end;
    place.other_end = read.other_end;
    job.process(0).motion = Motion::kFrozen;
    job.process(0).state = 'S';
    job.process(0).place = place;
    job.process(0).stacks_ns = At(30);
    for (int rank = 0; rank < 4; ++rank) {
      job.process(rank).host = "node-0";
      job.process(rank).has_met = true;
    }
    job.comm().kind = kind;
    job.Finish(6, args);
    job.Enter({1, 2, 3}, At(10), args);
    if (is_inside) job.Finish({0}, 1, args, At(10));
    return OnlyVerdict(job);
  }
};

TEST_P(ReadTest, SaysWhetherADriverMayIdle) {
  EXPECT_EQ(Judge(CommKind::kGloo, Broadcast()).is_idle, GetParam().may_idle);
}

// MPI's communicators have the kind of NCCL's.
TEST_P(ReadTest, SaysItOfEachLibraryAlike) {
  EXPECT_EQ(Judge(CommKind::kNccl, Broadcast()).is_idle, GetParam().may_idle);
}

TEST_P(ReadTest, SaysItOfNoneThatAlsoReduces) {
  EXPECT_FALSE(Judge(CommKind::kNccl, AllReduce()).is_idle);
}

INSTANTIATE_TEST_SUITE_P(All, ReadTest, testing::ValuesIn(kReads),
                         [](const auto& info) { return std::string(info.param.name); });

// With MPICH, the others do not get out of a broadcast before its root calls MPI again.
TEST_P(ReadTest, SaysItOfADriverInWhoseBroadcastTheOthersAre) {
  EXPECT_EQ(Judge(CommKind::kNccl, MpiBroadcast(), true).is_idle, GetParam().may_idle);
}

TEST_P(ReadTest, SaysItOfNoneInWhoseAllreduceTheOthersAre) {
  const CallArgs reduces = {Op::kMPI_Allreduce, kNoDtype, kNoReduction, kNoPeer, 4};
  EXPECT_FALSE(Judge(CommKind::kNccl, reduces, true).is_idle);
}

// Rank 1 waits for the next message of rank 0, which has sent it some.
Verdict JudgeSender(const char* waits_in, bool answers) {
  JobBuilder job(2);
  job.comm().kind = CommKind::kGloo;
  for (int i = 0; i < 5; ++i) {
    job.Issue(0, Send(1), At(i));
    job.Issue(1, Recv(0), At(i));
  }
  if (answers) {
    job.Issue(1, Send(0), At(6));
    job.Issue(0, Recv(1), At(6));
  }
  job.CompleteP2p({0, 1});
  job.process(0).place = {"/x/engine.py:9 in main", waits_in, true, " zmq main "};
  job.process(0).stacks_ns = At(30);
  job.Issue(1, Recv(0), At(10));
  return OnlyVerdict(job);
}

TEST(RequestsByGlooTest, ASenderThatWaitsForAnotherProcessMayIdle) {
  EXPECT_TRUE(JudgeSender("Socket.recv", false).is_idle);
  EXPECT_FALSE(JudgeSender("time.sleep", false).is_idle);
  EXPECT_FALSE(JudgeSender("Socket.recv", true).is_idle) << "a stage of a pipeline";
}

TEST(RequestsByGlooTest, ARankThatComputesDoesNotWaitForRequests) {
  EXPECT_FALSE(JudgeScheduler(9, Broadcast(), Motion::kMoving).is_idle);
}

TEST(RequestsByGlooTest, AGroupThatCarriesOtherCallsBringsNoRequests) {
  EXPECT_FALSE(JudgeScheduler(9, AllReduce()).is_idle);
  EXPECT_EQ(JudgeScheduler(9, AllReduce()).certainty, Certainty::kCertain);
}

}  // namespace
}  // namespace rollcall
