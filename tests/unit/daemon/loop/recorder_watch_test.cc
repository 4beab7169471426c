// SPDX-License-Identifier: Apache-2.0
// When Flight Recorders are asked, and what their answers decide.
#include "daemon/loop/recorder_watch.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "base/durations.h"

namespace rollcall {
namespace {

struct FakeSource : RecorderSource {
  bool Ask(const JobState& /*job*/, const std::vector<int32_t>& processes) override {
    asked.push_back(processes);
    return can_be_asked;
  }
  std::optional<RecorderAnswer> Answer(const JobState& /*job*/) override { return answer; }

  std::vector<std::vector<int32_t>> asked;
  std::optional<RecorderAnswer> answer;
  bool can_be_asked = true;
};

RecorderAnswer SaysThatRankOneIsMissing() {
  Verdict verdict;
  verdict.cause = Cause::kMissingRank;
  RecorderAnswer answer;
  answer.verdicts.push_back(verdict);
  answer.note = "asked once";
  return answer;
}

// Two ranks that have stood since second 100.
class RecorderWatchTest : public testing::Test {
 protected:
  RecorderWatchTest() {
    job_.processes.resize(2);
    for (int32_t i = 0; i < 2; ++i) {
      Process& process = job_.processes[static_cast<size_t>(i)];
      process.pid = 4000 + i;
      process.global_rank = i;
      process.liveness = Liveness::kAlive;
    }
  }

  // With a standstill, if the stacks show one, at this second.
  std::vector<Verdict> At(int64_t second, bool has_verdict = true, int64_t since = 100) {
    for (Process& process : job_.processes) {
      auto standing = std::make_shared<Standing>();
      standing->since_ns = since * kSecond;
      standing->newest_ns = second * kSecond;
      process.standing = standing;
    }
    std::vector<Verdict> verdicts;
    if (has_verdict) {
      verdicts.emplace_back();
      verdicts.back().cause = Cause::kStandstill;
      verdicts.back().waited_ns = (second - since) * kSecond;
    }
    watch_.Complete(job_, second * kSecond, limits_, &verdicts);
    return verdicts;
  }

  // The same while it is unknown whether rank 1 stands.
  std::vector<Verdict> MovingAt(int64_t second) {
    job_.processes[1].standing = nullptr;
    std::vector<Verdict> verdicts(1);
    verdicts[0].cause = Cause::kStandstill;
    verdicts[0].waited_ns = 70 * kSecond;
    watch_.Complete(job_, second * kSecond, limits_, &verdicts);
    return verdicts;
  }

  JobState job_;
  Limits limits_;  // 60 s
  FakeSource source_;
  RecorderWatch watch_{&source_};
};

TEST_F(RecorderWatchTest, AsksOnceWhenTheRanksHaveStoodForLong) {
  At(159);
  EXPECT_TRUE(source_.asked.empty());
  At(160);
  At(161);
  EXPECT_EQ(source_.asked, (std::vector<std::vector<int32_t>>{{0, 1}}));
  source_.answer = RecorderAnswer();
  At(170);
  At(400, true, 300);
  EXPECT_EQ(source_.asked.size(), 1u);
}

TEST_F(RecorderWatchTest, NothingIsConfirmedWhileAnswersAreAwaited) {
  EXPECT_LT(At(160).at(0).waited_ns, limits_.hang_after_ns);
  EXPECT_TRUE(watch_.IsWaiting());
  source_.answer = RecorderAnswer();
  EXPECT_EQ(At(162).at(0).waited_ns, 62 * kSecond);
  EXPECT_FALSE(watch_.IsWaiting());
}

TEST_F(RecorderWatchTest, TheSequenceNumbersDecide) {
  source_.answer = SaysThatRankOneIsMissing();
  const std::vector<Verdict> verdicts = At(160);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].cause, Cause::kMissingRank);
  EXPECT_EQ(verdicts[0].since_ns, 100 * kSecond);
  EXPECT_EQ(verdicts[0].waited_ns, 60 * kSecond);
  EXPECT_EQ(verdicts[0].evidence.back(), "asked once");
  EXPECT_EQ(verdicts[0].evidence_age_ns, 0);
}

// Ranks that wait for their GPUs: the stacks alone say nothing of them.
TEST_F(RecorderWatchTest, TheSequenceNumbersDecideAlsoWhereTheStacksShowNoHang) {
  source_.answer = SaysThatRankOneIsMissing();
  EXPECT_EQ(At(160, false).size(), 1u);
}

TEST_F(RecorderWatchTest, AnAnswerHoldsOnlyWhileNoRankMoves) {
  source_.answer = SaysThatRankOneIsMissing();
  At(160, false);
  EXPECT_EQ(At(170, false).size(), 1u);
  EXPECT_TRUE(At(180, false, 175).empty());
  EXPECT_TRUE(At(240, false, 175).empty());
}

TEST_F(RecorderWatchTest, ARankThatWritesItsDumpDoesNotMove) {
  At(160, false);
  EXPECT_TRUE(watch_.IsWaiting());
  source_.answer = SaysThatRankOneIsMissing();
  const std::vector<Verdict> verdicts = At(163, false, 162);
  ASSERT_EQ(verdicts.size(), 1u);
  EXPECT_EQ(verdicts[0].waited_ns, 63 * kSecond);
  EXPECT_EQ(At(300, false, 165).size(), 1u);
}

TEST_F(RecorderWatchTest, NothingIsConfirmedWhileARankMovesAfterTheAnswer) {
  At(160, false);
  source_.answer = SaysThatRankOneIsMissing();
  for (const int64_t second : {163, 170}) {
    const std::vector<Verdict> verdicts = MovingAt(second);
    ASSERT_EQ(verdicts.size(), 1u);
    EXPECT_EQ(verdicts[0].cause, Cause::kStandstill);
    EXPECT_LT(verdicts[0].waited_ns, limits_.hang_after_ns);
  }
  EXPECT_EQ(At(172, false, 171).at(0).cause, Cause::kMissingRank);
}

TEST_F(RecorderWatchTest, AnAnswerEndsWhereARankStillMovesLater) {
  At(160, false);
  source_.answer = SaysThatRankOneIsMissing();
  MovingAt(163);
  EXPECT_EQ(MovingAt(173).at(0).waited_ns, 70 * kSecond);
  EXPECT_TRUE(At(240, false, 172).empty());
}

TEST_F(RecorderWatchTest, AStandstillStaysWhereTheRecordersShowNoHangOrCannotBeAsked) {
  source_.answer = RecorderAnswer();
  source_.answer->note = "no call waits";
  const std::vector<Verdict> verdicts = At(160);
  EXPECT_EQ(verdicts.at(0).cause, Cause::kStandstill);
  EXPECT_EQ(verdicts.at(0).evidence.back(), "no call waits");
  FakeSource none;
  none.can_be_asked = false;
  watch_ = RecorderWatch(&none);
  EXPECT_EQ(At(160).at(0).waited_ns, 60 * kSecond);
}

TEST_F(RecorderWatchTest, ARecordedCallThatHangsSaysMore) {
  std::vector<Verdict> verdicts(1);
  verdicts[0].cause = Cause::kDeadlock;
  At(100);
  watch_.Complete(job_, 160 * kSecond, limits_, &verdicts);
  EXPECT_TRUE(source_.asked.empty());
  limits_.watches_calls_only = true;
  At(160);
  EXPECT_TRUE(source_.asked.empty());
}

}  // namespace
}  // namespace rollcall
