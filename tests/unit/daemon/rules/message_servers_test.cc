// SPDX-License-Identifier: Apache-2.0
// Programs of MPI in which ranks wait for requests by design: nothing hangs while somebody goes on.
// And the same programs once all main threads stand.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/model/message_counts.h"
#include "interpose/segment_messages.h"
#include "message_job.h"

namespace rollcall {
namespace {

using segment::kAnySource;
using segment::kAnyTag;

constexpr char kJoins[] = " __futex_abstimed_wait_common __pthread_clockjoin_ex main ";
constexpr char kTakesFromQueue[] = " futex threading.Condition.wait queue.Queue.get train.main ";
constexpr char kAccepts[] = " accept4 accept Serve main ";

enum class Then : uint8_t { kNothing, kIdle, kBlames };

struct Case {
  const char* name;
  int ranks;
  std::function<void(MessageJob*)> happens;
  Then then;
  Ranks blamed = {};
};

// A rank of each pair answers the requests of the other one, in a thread of its own.
void ListenToEachOther(MessageJob* job) {
  job->Listen(0, 1, 99, 10);
  job->Listen(1, 0, 99, 10);
}

void ListenToAll(int ranks, MessageJob* job) {
  for (int rank = 0; rank < ranks; ++rank) job->Listen(rank, kAnySource, 99, 10);
}

const Case kCases[] = {
    // A listener beside a main thread.
    {"a_listener_for_one_rank_whose_rank_goes_on_with_other_messages", 2,
     [](MessageJob* job) {
       job->Listen(0, 1, 99, 10);
       job->Move(0, 66);
     },
     Then::kNothing},
    {"a_listener_for_one_rank_whose_rank_makes_no_other_call", 2,
     [](MessageJob* job) { job->Listen(0, 1, 99, 10); }, Then::kIdle},
    {"listeners_for_each_other", 2, [](MessageJob* job) { ListenToEachOther(job); }, Then::kIdle},
    {"listeners_for_any_rank_on_all_ranks", 4, [](MessageJob* job) { ListenToAll(4, job); },
     Then::kIdle},
    {"a_listener_for_any_rank_while_others_work", 3,
     [](MessageJob* job) { job->Listen(0, kAnySource, 99, 10); }, Then::kNothing},
    {"a_listener_whose_peer_has_messages_that_are_not_counted", 2,
     [](MessageJob* job) {
       job->Listen(0, 1, 99, 10);
       job->counts(1).lost = true;
     },
     Then::kNothing},
    {"a_listener_that_polls", 2,
     [](MessageJob* job) { job->Listen(0, 1, 99, 10, Op::kMPI_Iprobe); }, Then::kIdle},
    {"a_listener_for_a_rank_that_has_left", 3,
     [](MessageJob* job) {
       job->Listen(0, 1, 99, 10);
       job->job.Exit(1, At(12));
       job->Move(0, 66);
     },
     Then::kNothing},
    {"a_listener_beside_a_server_without_requests", 2,
     [](MessageJob* job) {
       job->Listen(0, 1, 99, 10);
       job->Stand(0, kAccepts, 40);
     },
     Then::kIdle},
    {"a_listener_beside_a_main_thread_that_joined_a_thread_at_work", 2,
     [](MessageJob* job) {
       job->Listen(0, 1, 99, 10);
       job->Stand(0, kJoins, 40);
       StackPlace work = MessageJob::MakePlace(" Compute Worker ");
       work.sleeps = false;
       job->job.process(0).thread_places.push_back({9002, "", work});
     },
     Then::kIdle},
    {"stacks_of_before_the_wait_show_nothing", 2,
     [](MessageJob* job) {
       job->Listen(0, 1, 99, 10);
       job->Stand(0, kJoins, 5);
     },
     Then::kIdle},
    // The main thread waits for that thread.
    {"a_main_thread_that_joined_the_thread_that_receives",
     2,
     [](MessageJob* job) {
       job->Listen(0, 1, 99, 10);
       job->Stand(0, kJoins, 40);
     },
     Then::kBlames,
     {1}},
    {"a_main_thread_that_waits_for_what_the_thread_receives",
     3,
     [](MessageJob* job) {
       for (const int rank : {0, 2}) {
         job->Listen(rank, 1, 99, 10);
         job->Stand(rank, kTakesFromQueue, 40);
       }
     },
     Then::kBlames,
     {1}},
    {"all_main_threads_have_joined_threads_that_wait_for_each_other",
     2,
     [](MessageJob* job) {
       ListenToEachOther(job);
       for (const int rank : {0, 1}) job->Stand(rank, kJoins, 40);
     },
     Then::kBlames,
     {0, 1}},
    // A listener excuses no rank.
    {"main_threads_that_stand_beside_listeners",
     3,
     [](MessageJob* job) {
       ListenToAll(3, job);
       job->Receive(1, 0, 7, 10);
     },
     Then::kBlames,
     {0}},
    {"a_main_thread_that_has_begun_to_wait_beside_an_old_listener", 2,
     [](MessageJob* job) {
       job->Listen(1, kAnySource, 99, 10);
       job->Receive(1, 0, 7, 62);
     },
     Then::kNothing},
    {"main_threads_that_wait_for_each_other_beside_listeners",
     2,
     [](MessageJob* job) {
       ListenToAll(2, job);
       job->Receive(0, 1, 7, 10);
       job->Receive(1, 0, 7, 10);
     },
     Then::kBlames,
     {0, 1}},
    // What listeners answer each other is not work of main threads.
    {"main_threads_that_wait_for_each_other_while_listeners_answer_requests",
     3,
     [](MessageJob* job) {
       job->Receive(0, 1, 7, 10);
       job->Receive(1, 0, 7, 10);
       for (const int rank : {0, 1, 2}) job->Move(rank, 66);
       for (const int rank : {0, 1, 2}) job->Listen(rank, kAnySource, 99, 66);
     },
     Then::kBlames,
     {0, 1}},
    {"a_main_thread_that_stands_while_its_listener_answers_the_listeners_of_all_that_wait",
     3,
     [](MessageJob* job) {
       for (const int rank : {0, 2}) job->Receive(rank, 1, 7, 10);
       job->Listen(1, kAnySource, 99, 66);
       job->Move(1, 66);
     },
     Then::kBlames,
     {1}},
    // Work that a rank brings which goes on.
    {"a_worker_without_work_of_a_master_that_goes_on", 3,
     [](MessageJob* job) {
       job->Receive(2, 0, 8, 10);
       job->Move(0, 66);
     },
     Then::kNothing},
    {"a_worker_that_probes_for_work_of_a_master_that_goes_on", 3,
     [](MessageJob* job) {
       job->Receive(2, 0, kAnyTag, 10, Op::kMPI_Probe);
       job->Move(0, 66);
     },
     Then::kNothing},
    {"a_worker_without_work_of_a_master_that_went_on_and_stands",
     3,
     [](MessageJob* job) {
       job->Receive(2, 0, 8, 10);
       job->Move(0, 30);
     },
     Then::kBlames,
     {0}},
    {"a_worker_whose_master_stands",
     3,
     [](MessageJob* job) {
       job->Receive(2, 0, 8, 10);
       job->Move(0, 9);
     },
     Then::kBlames,
     {0}},
    {"a_master_that_goes_on_with_collectives_of_others", 3,
     [](MessageJob* job) {
       job->Receive(2, 0, 8, 10);
       job->job.AddCommunicator(kDp + 1, "pair", {0, 1});
       job->job.Finish({0, 1}, 3, AllReduce(), At(65));
       job->job.On(kDp);
     },
     Then::kNothing},
    {"a_pipeline_behind_a_rank_that_goes_on", 4,
     [](MessageJob* job) {
       for (const int stage : {1, 2, 3}) job->Receive(stage, stage - 1, 7, 10);
       job->Move(0, 66);
     },
     Then::kNothing},
    {"a_pipeline_of_sends_towards_a_rank_that_goes_on", 6,
     [](MessageJob* job) {
       for (const int stage : {0, 1, 2, 3, 4}) job->Send(stage, stage + 1, 7, 10);
       job->Move(5, 66);
     },
     Then::kNothing},
    {"a_pipeline_behind_a_rank_that_stands",
     4,
     [](MessageJob* job) {
       for (const int stage : {1, 2, 3}) job->Receive(stage, stage - 1, 7, 10);
     },
     Then::kBlames,
     {0}},
    {"a_pipeline_in_which_sends_wait_for_a_slow_rank_that_goes_on", 4,
     [](MessageJob* job) {
       for (const int stage : {0, 1, 2}) job->Send(stage, stage + 1, 7, 10);
       job->Move(3, 66);
     },
     Then::kNothing},
    {"a_halo_exchange_with_a_rank_that_goes_on_elsewhere", 3,
     [](MessageJob* job) {
       for (const int rank : {0, 2}) {
         job->Send(rank, 1, 7, 10, Op::kMPI_Waitall);
         job->Receive(rank, 1, 7, 10, Op::kMPI_Waitall);
       }
       job->Move(1, 66);
     },
     Then::kNothing},
    {"a_halo_exchange_with_a_rank_that_stands",
     3,
     [](MessageJob* job) {
       for (const int rank : {0, 2}) {
         job->Send(rank, 1, 7, 10, Op::kMPI_Waitall);
         job->Receive(rank, 1, 7, 10, Op::kMPI_Waitall);
       }
     },
     Then::kBlames,
     {1}},
    {"of_two_that_owe_a_message_the_one_that_stands",
     3,
     [](MessageJob* job) {
       for (const int peer : {1, 2}) job->Receive(0, peer, 7, 10, Op::kMPI_Waitall);
       job->Move(2, 66);
     },
     Then::kBlames,
     {1}},
    {"a_server_that_probes_for_any_request_while_its_clients_work", 3,
     [](MessageJob* job) {
       job->Receive(0, kAnySource, kAnyTag, 10, Op::kMPI_Probe);
       job->Receive(1, 0, 8, 10);
     },
     Then::kNothing},
    {"a_client_that_waits_for_an_answer_of_a_server_without_a_request",
     2,
     [](MessageJob* job) {
       job->Receive(0, kAnySource, kAnyTag, 10, Op::kMPI_Probe);
       job->Receive(1, 0, 8, 10);
     },
     Then::kBlames,
     {0, 1}},
};

class MessageServerTest : public testing::TestWithParam<Case> {};

TEST_P(MessageServerTest, HangsOnlyOnceAllStand) {
  const Case& c = GetParam();
  MessageJob job(c.ranks);
  c.happens(&job);
  const std::vector<Verdict> verdicts = job.Judge();
  if (c.then == Then::kNothing) {
    EXPECT_TRUE(verdicts.empty()) << verdicts[0].summary;
    return;
  }
  ASSERT_FALSE(verdicts.empty());
  const Verdict& first = verdicts[0];
  EXPECT_EQ(first.is_idle, c.then == Then::kIdle) << first.summary;
  EXPECT_EQ(Blamed(first), c.blamed) << first.summary;
  EXPECT_LT(first.certainty, Certainty::kCertain) << first.summary;
}

INSTANTIATE_TEST_SUITE_P(Servers, MessageServerTest, testing::ValuesIn(kCases),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(MessageServersTest, AnIdleListenerIsPossiblyAHang) {
  MessageJob job(2);
  job.Listen(0, 1, 99, 10);
  const std::vector<Verdict> verdicts = job.Judge();
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].certainty, Certainty::kPossible);
  EXPECT_EQ(verdicts[0].waiting_ranks, Ranks{0});
  EXPECT_EQ(
      verdicts[0].summary,
      "rank 0 waits in MPI_Recv of communicator \"dp\" in a thread beside its main one: if that "
      "thread serves requests, the job does not hang; 1 rank has waited 60 s");
}

// Which thread waits for which message is not known: one of them may be a listener.
TEST(MessageServersTest, AMissingMessageBesideAListenerIsPossibleAtMost) {
  MessageJob job(3);
  job.Listen(1, kAnySource, 99, 10);
  job.Receive(1, 0, 7, 10);
  const std::vector<Verdict> verdicts = job.Judge();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].certainty, Certainty::kPossible) << verdicts[0].summary;
}

// Between its tests it sleeps, or waits for a socket: it may serve what comes there.
TEST(MessageServersTest, ALoopThatRestsAtASocketIsPossibleAtMost) {
  for (const auto& [channel, certainty] : {std::pair("hrtimer_nanosleep", Certainty::kLikely),
                                           std::pair("do_sys_poll", Certainty::kPossible),
                                           std::pair("ep_poll", Certainty::kPossible)}) {
    MessageJob job(2);
    job.Receive(1, 0, 7, 10, Op::kMPI_Iprobe);
    job.job.process(1).wait_channel = channel;
    const std::vector<Verdict> verdicts = job.Judge();
    ASSERT_FALSE(verdicts.empty());
    EXPECT_EQ(Blamed(verdicts[0]), Ranks{0}) << channel;
    EXPECT_EQ(verdicts[0].certainty, certainty) << channel;
  }
}

// It has gone on for a while: the wait counts from then on.
TEST(MessageServersTest, MeasuresAWaitByHowLongTheAwaitedRankStands) {
  MessageJob job(3);
  job.Receive(2, 0, 8, 10);
  job.Move(0, 30);
  const std::vector<Verdict> verdicts = job.Judge();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].counts_from_ns, At(30));
}

TEST(MessageCountsTest, MoveWithTheMessagesOnly) {
  auto counts = std::make_shared<MessageCounts>();
  counts->by_peer = {{1, 7, 2, 3, 0, 0}};
  EXPECT_EQ(NoteMoves(counts, nullptr, At(1))->moved_ns, 0) << "nothing is known of before";
  auto waits = std::make_shared<MessageCounts>(*counts);
  waits->by_peer[0].receives_awaited = 3;
  EXPECT_EQ(NoteMoves(waits, counts.get(), At(2))->moved_ns, 0);
  auto next = std::make_shared<MessageCounts>(*waits);
  ++next->by_peer[0].sends;
  const auto moved = NoteMoves(next, waits.get(), At(3));
  EXPECT_EQ(moved->moved_ns, At(3));
  EXPECT_EQ(NoteMoves(next, moved.get(), At(4))->moved_ns, At(3));
}

}  // namespace
}  // namespace rollcall
