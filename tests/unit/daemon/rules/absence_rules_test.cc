// SPDX-License-Identifier: Apache-2.0
// The rules for absent ranks that others wait for: missing_rank, rank_exited, rank_died,
// host_lost, init_incomplete.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "daemon/model/client_limits.h"
#include "daemon/rules/claimed_sizes.h"
#include "daemon/rules/members/rank_map.h"
#include "job_builder.h"

namespace rollcall {
namespace {

using Ranks = std::vector<int32_t>;
using C = Cause;
using J = JobBuilder;
constexpr Certainty kLikely = Certainty::kLikely, kPossible = Certainty::kPossible;

// The verdicts with this cause that no other verdict explains.
std::vector<Verdict> RootVerdicts(Cause cause, const JobState& job, int64_t now_ns) {
  std::vector<Verdict> verdicts;
  for (Verdict& v : Diagnose(job, now_ns, Limits())) {
    if (v.cause == cause && !v.is_consequence) verdicts.push_back(std::move(v));
  }
  return verdicts;
}

struct Case {
  const char* name;
  JobBuilder job;
  std::function<void(JobBuilder& job)> change;  // may be empty
  Cause cause;
  double now;
  Ranks blamed;  // empty if there is no verdict
  Certainty certainty = Certainty::kCertain;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

// Ranks 0-2 have waited in call 24 since second 10; rank 3 has not entered it.
JobBuilder Waiting(bool markers = true) {
  JobBuilder job(4, markers);
  job.Finish(24);
  job.Enter({0, 1, 2}, At(10));
  return job;
}

JobBuilder Initializing(int ranks, std::vector<int> came, double since) {
  JobBuilder job(ranks);
  for (int rank = 0; rank < ranks; ++rank) job.Initializing(rank, At(since));
  for (int rank = 0; rank < ranks; ++rank) {
    if (std::find(came.begin(), came.end(), rank) == came.end()) job.comm().members.erase(rank);
  }
  return job;
}

// clang-format off
const Case kCases[] = {
    {"one_rank_is_absent", Waiting(), {}, C::kMissingRank, 70, {3}},
    {"late_but_below_the_limit", Waiting(), {}, C::kMissingRank, 24.9, {}},
    {"late_at_the_limit", Waiting(), {}, C::kMissingRank, 25, {3}},
    {"first_waiter_counts", JobBuilder(4),
     [](J& j) { j.Enter({0}, At(10)); j.Enter({1, 2}, At(24)); }, C::kMissingRank, 25, {3}},
    {"most_are_absent", JobBuilder(4), [](J& j) { j.Finish(5); j.Enter({2}, At(10)); },
     C::kMissingRank, 70, {0, 1, 3}},
    {"without_markers_it_is_inferred", Waiting(false), {}, C::kMissingRank, 70, {3}, kLikely},
    {"without_markers_but_host_inside_the_call", Waiting(false),
     [](J& j) { j.Block({0, 1, 2}, At(10)); }, C::kMissingRank, 70, {3}},
    {"waiting_shows_only_through_another_communicator", Waiting(false),
     [](J& j) { for (const int rank : {0, 1, 2}) j.member(rank).host_waits_since_ns = 0; },
     C::kMissingRank, 70, {3}, kPossible},
    {"entered_ahead_but_no_rank_waits", JobBuilder(4, false),
     [](J& j) { j.Finish(24); j.Finish({0, 1, 2}, 1); }, C::kMissingRank, 1000, {}},
    {"gpu_has_not_reached_the_call", Waiting(),
     [](J& j) { for (const int rank : {0, 1, 2}) --j.member(rank).started; },
     C::kMissingRank, 1000, {}},
    {"idle_job", JobBuilder(4), [](J& j) { j.Finish(24); }, C::kMissingRank, 1e6, {}},
    {"silent_agent_may_be_a_lost_host", Waiting(),
     [](J& j) { j.process(3).liveness = Liveness::kSilent; }, C::kHostLost, 70, {3}, kLikely},
    {"liveness_not_known_is_not_certain", Waiting(),
     [](J& j) { j.process(3).liveness = Liveness::kUnknown; }, C::kMissingRank, 70, {3}, kPossible},
    {"offline_liveness_is_unknown", Waiting(),
     [](J& j) {
       j.state.offline = true;
       for (Process& p : j.state.processes) p.liveness = Liveness::kUnknown;
     },
     C::kMissingRank, 70, {3}},
    {"root_of_a_broadcast_has_continued", JobBuilder(3),
     [](J& j) {
       j.Finish(8);
       j.Finish({0}, 1, Broadcast(), At(9));
       j.Enter({1}, At(10), Broadcast());
       j.Enter({0}, At(12));
     },
     C::kMissingRank, 70, {2}},
    {"only_the_root_waits_in_a_later_call", JobBuilder(2),
     [](J& j) { j.Finish(8); j.Finish({0}, 1, Broadcast(), At(9)); j.Enter({0}, At(12)); },
     C::kMissingRank, 70, {1}},
    {"host_waits_for_the_gpu_after_a_receive", JobBuilder(2, false),
     [](J& j) {
       j.Finish({0}, 1);
       CallRecord receive;
       receive.index = 1;
       receive.position = 1;
       receive.args = Send(1);
       receive.args.op = Op::kRecv;
       j.member(0).records.push_back(receive);
       j.process(0).blocked = {{1, Op::kcudaStreamSynchronize, 0, At(10)}};
     },
     C::kMissingRank, 1000, {}},
    {"rank_without_a_report_is_only_possible", Waiting(), [](J& j) { j.comm().members.erase(3); },
     C::kMissingRank, 70, {3}, kPossible},
    {"only_p2p_waits", JobBuilder(2, false),
     [](J& j) {
       j.Finish(4);
       j.Finish({0}, 1);
       Member& m = j.member(0);
       CallRecord send;
       send.index = m.records.back().index + 1;
       send.position = m.entered;
       send.args = Send(1);
       m.records.push_back(send);
       m.p2p_entered = 1;
       m.host_blocked_since_ns = At(10);
       j.process(0).blocked = {{1, Op::kSend, kDp, At(10)}};
     },
     C::kMissingRank, 1000, {}},
    {"waiting_in_an_earlier_call_is_not_missing", JobBuilder(4),
     [](J& j) {
       j.Finish(24);
       j.Enter({0, 1, 2, 3}, At(5));
       j.Complete({0, 1, 2});
       j.Enter({0, 1, 2}, At(10));
     },
     C::kMissingRank, 70, {}},
    {"rank_outside_the_size_is_ignored", JobBuilder(4),
     [](J& j) {
       j.Finish(24);
       j.Enter({0, 1, 2, 3}, At(5));
       j.Complete({0, 1, 2, 3});
       j.comm().members[9].state = MemberState::kReady;
     },
     C::kMissingRank, 1000, {}},
    {"damaged_size", Waiting(), [](J& j) { j.comm().size = INT32_MAX; }, C::kMissingRank, 1000, {}},
    {"damaged_process_index", Waiting(), [](J& j) { j.member(3).process = 77; },
     C::kMissingRank, 70, {3}, kPossible},
    {"record_of_the_call_is_lost", Waiting(), [](J& j) { j.LoseRecordsBefore(99); },
     C::kMissingRank, 70, {3}, kLikely},
    {"nothing_known", JobBuilder(0), [](J& j) { j.state = JobState(); }, C::kMissingRank, 1000, {}},

    {"left_early", Waiting(), [](J& j) { j.Exit(3, At(11)); }, C::kRankExited, 16, {3}},
    {"left_just_now", Waiting(), [](J& j) { j.Exit(3, At(11)); }, C::kRankExited, 15.9, {}},
    {"left_and_not_missing", Waiting(), [](J& j) { j.Exit(3, At(11)); }, C::kMissingRank, 70, {}},
    {"inside_destroy", Waiting(),
     [](J& j) {
       j.member(3).state = MemberState::kFinalizing;
       j.member(3).state_since_ns = At(11);
     },
     C::kRankExited, 70, {3}},
    {"leaving_one_by_one_at_the_end", JobBuilder(4),
     [](J& j) { j.Finish(24); for (const int rank : {0, 1, 2}) j.Exit(rank, At(rank)); },
     C::kRankExited, 1000, {}},
    {"others_still_compute_after_the_last_call", JobBuilder(2, false),
     [](J& j) { j.Finish(23); j.Enter({0, 1}, At(10)); j.Exit(1, At(11)); },
     C::kRankExited, 1000, {}},

    {"died_before_the_call", Waiting(), [](J& j) { j.Die(3, At(9)); }, C::kRankDied, 15, {3}},
    {"ended_before_the_call_with_unknown_status", Waiting(), [](J& j) { j.EndUnseen(3, At(9)); },
     C::kRankDied, 15, {3}, kLikely},
    {"ended_inside_the_call_with_unknown_status", Waiting(),
     [](J& j) { j.Enter({3}, At(11)); j.EndUnseen(3, At(12)); }, C::kRankDied, 70, {3}, kLikely},
    {"ended_before_joining_with_unknown_status", Initializing(4, {0, 1, 2}, 10),
     [](J& j) {
       j.state.processes[3].liveness = Liveness::kEnded;
       j.state.processes[3].ended_ns = At(9);
     },
     C::kRankDied, 70, {3}, kLikely},
    {"ended_with_unknown_status_does_not_wait", Waiting(),
     [](J& j) { for (const int rank : {0, 1, 2}) j.EndUnseen(rank, At(20)); },
     C::kMissingRank, 1000, {}},
    {"died_inside_the_call", Waiting(), [](J& j) { j.Enter({3}, At(11)); j.Die(3, At(12)); },
     C::kRankDied, 70, {3}},
    {"died_inside_the_call_without_markers", Waiting(false),
     [](J& j) { j.Enter({3}, At(11)); j.Die(3, At(12)); }, C::kRankDied, 70, {3}, kPossible},
    {"died_while_no_rank_waits", JobBuilder(4), [](J& j) { j.Finish(24); j.Die(3, At(1)); },
     C::kRankDied, 1000, {}},
    {"a_dead_rank_does_not_wait", Waiting(),
     [](J& j) { for (const int rank : {0, 1, 2}) j.Die(rank, At(20)); }, C::kMissingRank, 1000, {}},

    {"one_never_joined", Initializing(4, {0, 1, 2}, 10), {}, C::kInitIncomplete, 25, {3}},
    {"slow_to_join", Initializing(4, {0, 1, 2}, 10), {}, C::kInitIncomplete, 24, {}},
    {"all_have_joined", Initializing(4, {0, 1, 2, 3}, 10), {}, C::kInitIncomplete, 1000, {}},
    {"process_of_the_rank_is_unknown", Initializing(4, {0, 1, 2}, 10),
     [](J& j) { j.state.processes.pop_back(); }, C::kInitIncomplete, 70, {3}, kLikely},
    {"died_before_joining", Initializing(4, {0, 1, 2}, 10),
     [](J& j) {
       j.state.processes[3].liveness = Liveness::kDied;
       j.state.processes[3].ended_ns = At(9);
     },
     C::kRankDied, 70, {3}},
    {"died_while_joining", Initializing(4, {0, 1, 2, 3}, 10), [](J& j) { j.Die(1, At(11)); },
     C::kRankDied, 70, {1}},
    {"left_before_joining", Initializing(4, {0, 1, 2}, 10),
     [](J& j) { j.state.processes[3].liveness = Liveness::kExited; }, C::kRankExited, 70, {3}},
    {"creation_failed_on_one", Initializing(4, {0, 1, 2, 3}, 10),
     [](J& j) { j.member(2).state = MemberState::kFailed; }, C::kInitIncomplete, 70, {2}},
};
// clang-format on

class AbsenceRulesTest : public testing::TestWithParam<Case> {};

TEST_P(AbsenceRulesTest, Blames) {
  const Case& c = GetParam();
  JobBuilder job = c.job;
  if (c.change) c.change(job);
  const std::vector<Verdict> verdicts = RootVerdicts(c.cause, job.state, At(c.now));
  ASSERT_EQ(verdicts.size(), c.blamed.empty() ? 0u : 1u);
  if (c.blamed.empty()) return;
  EXPECT_EQ(CulpritRanks(verdicts[0].culprits), c.blamed);
  EXPECT_STREQ(CertaintyName(verdicts[0].certainty), CertaintyName(c.certainty));
  if (c.certainty != Certainty::kCertain) {
    EXPECT_FALSE(verdicts[0].missing_evidence.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, AbsenceRulesTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST(MissingRankTest, CountsTheCallsThatTheCulpritHasEntered) {
  for (const auto& [calls, words] :
       {std::pair{1, "rank 3: entered 1 call on the communicator"},
        std::pair{24, "rank 3: entered 24 calls on the communicator"}}) {
    JobBuilder job(4);
    job.Finish(calls);
    job.Enter({0, 1, 2}, At(10));
    const std::vector<Verdict> verdicts = RootVerdicts(Cause::kMissingRank, job.state, At(70));
    ASSERT_EQ(verdicts.size(), 1u);
    const auto& evidence = verdicts[0].evidence;
    EXPECT_TRUE(std::any_of(evidence.begin(), evidence.end(),
                            [&, start = std::string(words)](const std::string& line) {
                              return line.compare(0, start.size(), start) == 0;
                            }))
        << words;
  }
}

TEST(MissingRankTest, TheCulpritsAfterTheEighthShareOneLineOfEvidence) {
  const auto evidence = [](int absent) {
    JobBuilder job(absent + 1);
    job.Finish(24);
    job.Enter({0}, At(10));
    return RootVerdicts(Cause::kMissingRank, job.state, At(70)).at(0).evidence;
  };
  const auto is_rest = [](const std::string& line) { return line.compare(0, 4, "and ") == 0; };
  const auto eight = evidence(8), nine = evidence(9), twenty = evidence(20);
  EXPECT_TRUE(std::none_of(eight.begin(), eight.end(), is_rest));
  EXPECT_EQ(std::count(nine.begin(), nine.end(), "and 1 more: rank 9"), 1);
  EXPECT_EQ(std::count(twenty.begin(), twenty.end(), "and 12 more: ranks 9-20"), 1);
}

TEST(MissingRankTest, NamesTheCallAndTheWaitingRanks) {
  const std::vector<Verdict> verdicts = RootVerdicts(Cause::kMissingRank, Waiting().state, At(58));
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].position, 24u);
  EXPECT_EQ(verdicts[0].call.count, 1048576u);
  EXPECT_EQ(verdicts[0].waiting_ranks, (Ranks{0, 1, 2}));
  EXPECT_EQ(verdicts[0].waited_ns, 48 * kSecondNs);
  EXPECT_EQ(verdicts[0].culprits[0].host, "node-3");
  EXPECT_EQ(verdicts[0].culprits[0].pid, 4003);
  EXPECT_EQ(verdicts[0].culprits[0].device, 3);
}

TEST(MissingRankTest, NamesTheCallFromWhichItInfersTheWait) {
  const std::vector<Verdict> verdicts =
      RootVerdicts(Cause::kMissingRank, Waiting(false).state, At(70));
  ASSERT_EQ(verdicts.size(), 1u);
  ASSERT_EQ(verdicts[0].missing_evidence.size(), 1u);
  EXPECT_EQ(verdicts[0].missing_evidence[0],
            "no GPU markers on ranks 0-2: Rollcall infers the wait from cudaStreamSynchronize");
}

TEST(MissingRankTest, HasNoMissingEvidenceIfAllWaitsAreShown) {
  const auto verdicts = RootVerdicts(Cause::kMissingRank, Waiting().state, At(70));
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_TRUE(verdicts[0].missing_evidence.empty());
}

TEST(MissingRankTest, NamesGlobalRanks) {
  JobBuilder job(8);
  job.AddCommunicator(7, "tp", {4, 5, 6, 7});
  job.Enter({0, 1, 3}, At(10));
  const std::vector<Verdict> verdicts = RootVerdicts(Cause::kMissingRank, job.state, At(70));
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(CulpritRanks(verdicts[0].culprits), (Ranks{6}));
  EXPECT_EQ(verdicts[0].waiting_ranks, (Ranks{4, 5, 7}));
}

TEST(InitIncompleteTest, FindsTheAbsentRanksOfASplitByItsParent) {
  JobBuilder job(4);
  job.AddCommunicator(9, "", {3, 2, 1, 0});
  job.AddCommunicator(10, "", {3, 2, 1, 0});
  job.comm().parent = 9;
  for (const int rank : {0, 1, 2}) job.Initializing(rank, At(10));
  job.comm().members.erase(3);
  const std::vector<Verdict> verdicts = RootVerdicts(Cause::kInitIncomplete, job.state, At(70));
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(CulpritRanks(verdicts[0].culprits), (Ranks{0}));
  EXPECT_EQ(verdicts[0].call.op, Op::kCommSplit);
}

// Rank 3 of 4 creates a communicator of 5 ranks. `first`: the daemon heard it before the others.
JobBuilder CreatedWithTwoSizes(bool first) {
  JobBuilder job(4);
  job.AddCommunicator(9, "", {0, 1, 2, 3});
  for (const int rank : {0, 1, 2, 3}) job.Initializing(rank, At(10));
  job.comm().size = first ? 5 : 4;
  job.comm().other_size = first ? 4 : 5;
  if (!first) job.comm().claims.push_back({3, 5});
  for (const int rank : {0, 1, 2}) {
    if (first) job.comm().claims.push_back({rank, 4});
  }
  return job;
}

TEST(InitIncompleteTest, TheMajorityDecidesOnTheSize) {
  for (const bool first : {true, false}) {
    const JobBuilder job = CreatedWithTwoSizes(first);
    const std::vector<Verdict> verdicts = RootVerdicts(Cause::kInitIncomplete, job.state, At(70));
    ASSERT_EQ(verdicts.size(), 1u);
    EXPECT_EQ(CulpritRanks(verdicts[0].culprits), (Ranks{3}));
    EXPECT_EQ(verdicts[0].waiting_ranks, (Ranks{0, 1, 2}));
    EXPECT_EQ(verdicts[0].communicator_size, 4);
    EXPECT_NE(verdicts[0].summary.find("with 5 ranks, and the others create it with 4"),
              std::string::npos)
        << verdicts[0].summary;
  }
}

TEST(InitIncompleteTest, ACreationThatFailedBecauseOfAnotherSizeStillBlamesThatSize) {
  JobBuilder job = CreatedWithTwoSizes(true);
  job.member(0).state = MemberState::kFailed;
  const std::vector<Verdict> verdicts = RootVerdicts(Cause::kInitIncomplete, job.state, At(70));
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(CulpritRanks(verdicts[0].culprits), (Ranks{3}));
}

TEST(InitIncompleteTest, WithoutAMajorityNoSizeIsRight) {
  JobBuilder job = CreatedWithTwoSizes(false);
  job.comm().claims.push_back({2, 5});
  for (const Verdict& v : RootVerdicts(Cause::kInitIncomplete, job.state, At(70))) {
    EXPECT_EQ(v.certainty, Certainty::kPossible);
  }
}

// Two ranks with an old size have come first; of the others, one is still loading.
TEST(InitIncompleteTest, TheFirstToComeAreNotAMajority) {
  JobBuilder job = CreatedWithTwoSizes(false);
  job.comm().members.erase(2);
  job.comm().size = 3;
  job.comm().claims[0] = {3, 4};
  for (const Verdict& v : RootVerdicts(Cause::kInitIncomplete, job.state, At(70))) {
    EXPECT_EQ(v.certainty, Certainty::kPossible) << v.summary;
  }
}

TEST(InitIncompleteTest, SizesBeyondTheLimitMakeNoMajority) {
  Communicator comm;
  comm.size = 4095;  // as rank 0 says, which came first; all others say 4096
  for (int rank = 0; rank < 4096; ++rank) comm.members[rank].process = rank;
  for (int rank = 1; rank <= static_cast<int>(limits::kClaimedSizes); ++rank) {
    comm.claims.push_back({rank, 4096});
  }
  EXPECT_TRUE(JudgeClaimedSizes(comm).wrong.empty());
}

TEST(InitIncompleteTest, PrefersTheRankToItsWorkers) {
  JobBuilder job = Initializing(2, {0}, 10);
  job.state.processes[1].has_segment = false;
  Process worker = job.state.processes[1];
  worker.pid = 9999;
  worker.start_time += 50;
  job.state.processes.push_back(worker);
  const std::vector<Verdict> verdicts = RootVerdicts(Cause::kInitIncomplete, job.state, At(70));
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].culprits[0].pid, 4001);
}

TEST(InitIncompleteTest, ARankWhoseRestartedAgentHasNotFoundItsSegmentMayHaveJoined) {
  JobBuilder job = Initializing(2, {0}, 10);
  job.state.agents.emplace_back().heard_ns = At(70);
  job.state.processes[1].agent = 0;
  job.state.processes[1].has_met = true;
  std::vector<Verdict> verdicts = RootVerdicts(Cause::kInitIncomplete, job.state, At(70));
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].certainty, Certainty::kCertain);
  job.state.processes[1].has_segment = false;
  verdicts = RootVerdicts(Cause::kInitIncomplete, job.state, At(70));
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].certainty, Certainty::kPossible);
}

TEST(InitIncompleteTest, NamesTheCallThatTheAbsentRankIsInside) {
  JobBuilder job = Initializing(2, {0}, 10);
  job.state.processes[1].blocked = {{1, Op::kAllReduce, 77, At(5)}};
  const std::vector<Verdict> verdicts = RootVerdicts(Cause::kInitIncomplete, job.state, At(70));
  ASSERT_EQ(verdicts.size(), 1u);
  bool said = false;
  for (const std::string& line : verdicts[0].evidence) {
    said = said || line.find("inside AllReduce on communicator 00000000 for 65 s") != line.npos;
  }
  EXPECT_TRUE(said);
}

// A damaged sibling may seem complete although it has ranks beyond its size.
TEST(RankMapTest, ADamagedSiblingHasNoEffect) {
  JobBuilder job(8);
  job.AddCommunicator(11, "pp", {0, 4});
  job.AddCommunicator(12, "pp", {1, 5});
  auto& sibling = job.state.communicators.at(11).members;
  const Member member = sibling.at(1);
  sibling.erase(1);
  sibling[7] = member;
  job.state.communicators.at(12).members.erase(1);
  const RankProcesses found = RankFinder(job.state).Find(job.state.communicators.at(12), {{1, 1}});
  EXPECT_TRUE(found.processes.empty());
}

TEST(RankMapTest, ACompleteSiblingShowsTheMissingRank) {
  JobBuilder job(8);
  job.AddCommunicator(11, "pp", {0, 4});
  job.AddCommunicator(12, "pp", {1, 5});
  job.state.communicators.at(12).members.erase(1);
  const RankProcesses found = RankFinder(job.state).Find(job.state.communicators.at(12), {{1, 1}});
  EXPECT_EQ(found.processes, (std::map<int32_t, int32_t>{{1, 5}}));
  EXPECT_TRUE(found.guessed);
}

TEST(RankMapTest, ARankThatWasToldAnotherWorldIsFound) {
  JobBuilder job(4);
  job.comm().members.erase(2);
  job.state.processes[2].world_size = 5;
  const RankProcesses found = RankFinder(job.state).Find(job.comm(), {{2, 2}});
  EXPECT_EQ(found.processes, (std::map<int32_t, int32_t>{{2, 2}}));
  job.state.processes[3].world_size = 5;  // a member; most got 4
  EXPECT_EQ(RankFinder(job.state).Find(job.comm(), {{2, 2}}).processes, found.processes);
}

}  // namespace
}  // namespace rollcall
