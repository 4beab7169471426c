// SPDX-License-Identifier: Apache-2.0
#include "cli/run/hang_policy.h"

#include <gtest/gtest.h>

namespace rollcall {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kHangAfter = 60 * kSecond;

struct Case {
  const char* name;
  Finding finding;
  LocalStandstill local;
  bool acts;
};

const Case kCases[] = {
    {"a_certain_verdict_on_fresh_evidence", {"missing_rank", "certain", 0}, {}, true},
    {"a_likely_one", {"init_incomplete", "likely", 0}, {}, true},
    {"not_a_possible_one", {"missing_rank", "possible", 0}, {}, false},
    {"not_without_a_certainty", {"missing_rank", "", 0}, {}, false},
    {"not_on_old_evidence", {"missing_rank", "certain", 2 * kSecond}, {}, false},
    {"on_stacks_of_some_seconds_ago", {"standstill", "likely", 4 * kSecond}, {}, true},
    {"not_on_old_stacks", {"standstill", "likely", 6 * kSecond}, {}, false},
    {"on_the_silence_of_a_lost_host", {"host_lost", "likely", 20 * kSecond}, {}, true},
    {"not_on_a_remote_verdict_while_ranks_here_move",
     {"missing_rank", "certain", 0},
     {true, 0},
     false},
    {"not_before_ranks_here_have_waited_as_long",
     {"missing_rank", "certain", 0},
     {true, kHangAfter - 1},
     false},
    {"when_ranks_here_have_waited_as_long",
     {"missing_rank", "certain", 0},
     {true, kHangAfter},
     true},
    {"not_on_an_incident_of_another_job_while_ranks_here_pause",
     {"missing_rank", "certain", 0},
     {true, kHangAfter, true},
     false},
    {"not_on_an_incident_of_another_job_that_has_ended",
     {"rank_died", "certain", 0},
     {false, 0, true},
     false},
    {"not_on_a_mismatch_while_ranks_here_move",
     {"operation_mismatch", "certain", 0},
     {true, kSecond},
     false},
    {"on_a_mismatch_once_ranks_here_stand_still",
     {"operation_mismatch", "certain", 0},
     {true, 2 * kSecond},
     true},
};

class HangPolicyTest : public testing::TestWithParam<Case> {};

TEST_P(HangPolicyTest, Acts) {
  const Case& c = GetParam();
  EXPECT_EQ(WhyNotAct(c.finding, c.local, kHangAfter).empty(), c.acts);
}

INSTANTIATE_TEST_SUITE_P(OnHang, HangPolicyTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace rollcall
