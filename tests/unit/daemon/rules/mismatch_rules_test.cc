// SPDX-License-Identifier: Apache-2.0
// The rules for ranks that contradict each other, with the first divergence; and
// stalled_in_flight, for calls without absent ranks on which all agree.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "daemon/rules/rules.h"
#include "job_builder.h"

namespace rollcall {
namespace {

using Ranks = std::vector<int32_t>;
using Fields = std::vector<std::string>;

std::vector<Verdict> Mismatches(const JobState& job) {
  std::vector<Verdict> verdicts;
  for (const auto& [id, comm] : job.communicators) {
    for (Verdict& v : JudgeMismatches(job, comm)) verdicts.push_back(std::move(v));
  }
  return verdicts;
}

struct Case {
  const char* name;
  std::function<JobState()> job;
  Cause cause;
  uint64_t position;
  Ranks blamed;  // empty if there is no verdict of either kind
  Fields fields;
  Certainty certainty = Certainty::kCertain;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

// Four ranks: those in `odd` make this call, the others an all-reduce.
JobState Odd(const std::vector<int>& odd, CallArgs args, int before = 24) {
  JobBuilder job(4);
  job.Finish(before);
  for (int rank = 0; rank < 4; ++rank) {
    const bool is_odd = std::find(odd.begin(), odd.end(), rank) != odd.end();
    job.Enter({rank}, At(10 + rank), is_odd ? args : AllReduce());
  }
  return job.state;
}

CallArgs With(std::function<void(CallArgs*)> change) {
  CallArgs args = AllReduce();
  change(&args);
  return args;
}

// clang-format off
const Case kCases[] = {
    {"broadcast_against_all_reduce", [] { return Odd({2}, Broadcast()); },
     Cause::kOperationMismatch, 24, {2}, {"operation"}},
    {"first_call_of_all", [] { return Odd({2}, Broadcast(), 0); }, Cause::kOperationMismatch, 0,
     {2}, {"operation"}},
    {"rank_0_may_be_the_minority", [] { return Odd({0}, Broadcast()); },
     Cause::kOperationMismatch, 24, {0}, {"operation"}},
    {"two_against_two", [] { return Odd({0, 1}, Broadcast()); }, Cause::kOperationMismatch, 24,
     {2, 3, 0, 1}, {"operation"}, Certainty::kLikely},
    {"other_count", [] { return Odd({3}, AllReduce(7)); }, Cause::kArgumentMismatch, 24, {3},
     {"count"}},
    {"other_dtype", [] { return Odd({3}, With([](CallArgs* a) { a->dtype = 6; })); },
     Cause::kArgumentMismatch, 24, {3}, {"dtype"}},
    {"other_reduction", [] { return Odd({3}, With([](CallArgs* a) { a->reduction = 2; })); },
     Cause::kArgumentMismatch, 24, {3}, {"reduction"}},
    {"count_and_dtype",
     [] {
       return Odd({3}, With([](CallArgs* a) {
                    a->dtype = 6;
                    a->count = 1;
                  }));
     },
     Cause::kArgumentMismatch, 24, {3}, {"count", "dtype"}},
    {"other_root",
     [] {
       JobBuilder job(3);
       job.Enter({0, 1}, At(1), Broadcast(128, 0));
       job.Enter({2}, At(1), Broadcast(128, 2));
       return job.state;
     },
     Cause::kArgumentMismatch, 0, {2}, {"root"}},
    {"dynamic_reductions_are_equal",
     [] {
       JobBuilder job(4);
       job.Finish(3, With([](CallArgs* a) { a->reduction = kDynamicReduction; }));
       job.member(1).signature = 1;
       return job.state;
     },
     Cause::kArgumentMismatch, 0, {}, {}},
    {"bcast_is_broadcast_in_place",
     [] {
       JobBuilder job(2);
       CallArgs in_place = Broadcast();
       in_place.op = Op::kBcast;
       job.Finish({0}, 1, Broadcast());
       job.Finish({1}, 1, in_place);
       return job.state;
     },
     Cause::kOperationMismatch, 0, {}, {}},
    {"same_calls_at_other_speeds",
     [] {
       JobBuilder job(4);
       job.Finish(24);
       job.Finish({0, 1}, 3);
       job.Finish({2}, 1);
       return job.state;
     },
     Cause::kOperationMismatch, 0, {}, {}},
    {"an_extra_call_is_the_first_divergence",
     [] {
       JobBuilder job(4);
       job.Finish(3);
       job.Finish({0}, 1, Broadcast());
       job.Finish(20);
       return job.state;
     },
     Cause::kOperationMismatch, 3, {0}, {"operation"}},
    {"ranks_behind_are_not_culprits",
     [] {
       JobBuilder job(5);
       job.Finish(24);
       job.Enter({0}, At(10), Broadcast());
       job.Enter({1, 2, 3}, At(10));
       return job.state;
     },
     Cause::kOperationMismatch, 24, {0}, {"operation"}},
    {"ranks_behind_may_change_the_majority",
     [] {
       JobBuilder job(4);
       job.Finish(24);
       job.Enter({0}, At(10), Broadcast());
       job.Enter({1, 2}, At(10));
       return job.state;
     },
     Cause::kOperationMismatch, 24, {0}, {"operation"}, Certainty::kLikely},
    {"before_the_divergence_records_are_lost_but_proven_equal",
     [] {
       JobBuilder job(4);
       job.Finish(33);
       job.Enter({0, 1, 2}, At(10));
       job.Enter({3}, At(10), Broadcast());
       job.LoseRecordsBefore(32);
       return job.state;
     },
     Cause::kOperationMismatch, 33, {3}, {"operation"}},
    {"records_lost_since_the_last_proof",
     [] {
       JobBuilder job(4);
       job.Finish(40);
       job.Enter({0, 1, 2}, At(10));
       job.Enter({3}, At(10), Broadcast());
       job.LoseRecordsBefore(36);
       return job.state;
     },
     Cause::kOperationMismatch, 40, {3}, {"operation"}, Certainty::kLikely},
    {"only_checkpoints_are_left",
     [] {
       JobBuilder job(4);
       job.Finish(20);
       job.Finish({3}, 1, AllReduce(7));
       job.Finish({0, 1, 2}, 1);
       job.Finish(30);
       job.LoseRecordsBefore(40);
       return job.state;
     },
     Cause::kOperationMismatch, 16, {3}, {}, Certainty::kLikely},
    {"failed_calls_have_no_position",
     [] {
       JobBuilder job(2);
       job.Finish(4);
       CallRecord failed;
       failed.index = 4;
       failed.position = 4;
       failed.args = Broadcast();
       failed.result = 4;
       failed.returned_ns = At(1);
       job.member(0).records.push_back(failed);
       job.Finish({0}, 1);
       job.Enter({1}, At(2));
       job.member(0).signature = 1;
       return job.state;
     },
     Cause::kOperationMismatch, 0, {}, {}},
    {"torn_signature_is_no_proof",
     [] {
       JobBuilder job(2);
       job.Finish(4);
       job.member(0).signature = 99;
       return job.state;
     },
     Cause::kOperationMismatch, 0, {}, {}},
    {"nothing_known", [] { return JobState(); }, Cause::kOperationMismatch, 0, {}, {}},
};
// clang-format on

class MismatchRulesTest : public testing::TestWithParam<Case> {};

TEST_P(MismatchRulesTest, Blames) {
  const Case& c = GetParam();
  const JobState job = c.job();
  const std::vector<Verdict> verdicts = Mismatches(job);
  ASSERT_EQ(verdicts.size(), c.blamed.empty() ? 0u : 1u);
  if (c.blamed.empty()) return;
  EXPECT_EQ(verdicts[0].cause, c.cause);
  EXPECT_EQ(verdicts[0].position, c.position);
  EXPECT_EQ(verdicts[0].mismatched_fields, c.fields);
  EXPECT_STREQ(CertaintyName(verdicts[0].certainty), CertaintyName(c.certainty));
  Ranks blamed = CulpritRanks(verdicts[0].culprits);
  std::sort(blamed.begin(), blamed.end());
  Ranks expected = c.blamed;
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(blamed, expected);
}

INSTANTIATE_TEST_SUITE_P(Rules, MismatchRulesTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST(MismatchTest, GivesBothCalls) {
  const std::vector<Verdict> verdicts = Mismatches(Odd({2}, Broadcast()));
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].call.op, Op::kAllReduce);
  EXPECT_EQ(verdicts[0].culprits[0].call.op, Op::kBroadcast);
  EXPECT_EQ(verdicts[0].since_ns, At(12));  // when the second side entered the call
  EXPECT_EQ(verdicts[0].waiting_ranks, (Ranks{0, 1, 3}));
}

TEST(MismatchTest, SaysOfATieWhoHasNotEnteredTheCall) {
  JobBuilder job(3);
  job.Finish(24);
  job.Enter({1}, At(10), AllReduce());
  job.Enter({2}, At(11), Broadcast());
  const Verdict verdict = Mismatches(job.state).at(0);
  EXPECT_EQ(verdict.certainty, Certainty::kLikely);
  EXPECT_THAT(verdict.missing_evidence,
              testing::ElementsAre("no side has a majority: either side may be wrong",
                                   "no report yet that 1 other rank has entered this call"));
}

TEST(MismatchTest, NamesTheCallsBetweenWhichRecordsAreLost) {
  for (const Case& c : kCases) {
    if (std::string(c.name) != "only_checkpoints_are_left") continue;
    const std::vector<Verdict> verdicts = Mismatches(c.job());
    ASSERT_EQ(verdicts.size(), 1u);
    EXPECT_EQ(verdicts[0].position_end, 32u);
    ASSERT_FALSE(verdicts[0].missing_evidence.empty());
    EXPECT_NE(verdicts[0].missing_evidence[0].find("between calls #16 and #32 were overwritten"),
              std::string::npos);
  }
}

struct StallCase {
  const char* name;
  std::function<JobState()> job;
  double now;
  bool found;
  Ranks blamed;
  Certainty certainty = Certainty::kCertain;
};

void PrintTo(const StallCase& c, std::ostream* out) { *out << c.name; }

JobBuilder AllIn(bool markers = true) {
  JobBuilder job(4, markers);
  job.Finish(24);
  job.Enter({0, 1, 2, 3}, At(10));
  return job;
}

// clang-format off
const StallCase kStallCases[] = {
    {"all_started_none_finished", [] { return AllIn().state; }, 25, true, {}},
    {"below_the_limit", [] { return AllIn().state; }, 24.9, false, {}},
    {"the_last_to_join_counts",
     [] { auto j = AllIn(); j.member(3).waiting_since_ns = At(20); return j.state; }, 34, false,
     {}},
    {"some_finished", [] { auto j = AllIn(); j.Complete({0, 1, 2}); return j.state; }, 70, true,
     {3}},
    {"all_finished", [] { auto j = AllIn(); j.Complete({0, 1, 2, 3}); return j.state; }, 70, false,
     {}},
    {"others_continued",
     [] {
       auto j = AllIn();
       j.Complete({0, 1, 2});
       j.Enter({0, 1, 2}, At(11));
       return j.state;
     },
     70, true, {3}},
    {"without_markers_it_may_be_other_work", [] { return AllIn(false).state; }, 70, true, {},
     Certainty::kPossible},
    {"one_has_not_started", [] { auto j = AllIn(); --j.member(3).started; return j.state; }, 70,
     false, {}},
    {"one_has_no_report", [] { auto j = AllIn(); j.comm().members.erase(3); return j.state; }, 70,
     false, {}},
    {"one_died", [] { auto j = AllIn(); j.Die(3, At(11)); return j.state; }, 70, false, {}},
};
// clang-format on

class StalledTest : public testing::TestWithParam<StallCase> {};

TEST_P(StalledTest, Blames) {
  const StallCase& c = GetParam();
  std::vector<Verdict> verdicts;
  for (Verdict& v : Diagnose(c.job(), At(c.now), Limits())) {
    if (v.cause == Cause::kStalledInFlight) verdicts.push_back(std::move(v));
  }
  ASSERT_EQ(verdicts.size(), c.found ? 1u : 0u);
  if (!c.found) return;
  EXPECT_EQ(CulpritRanks(verdicts[0].culprits), c.blamed);
  EXPECT_STREQ(CertaintyName(verdicts[0].certainty), CertaintyName(c.certainty));
  EXPECT_EQ(verdicts[0].position, 24u);
}

INSTANTIATE_TEST_SUITE_P(Rules, StalledTest, testing::ValuesIn(kStallCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace rollcall
