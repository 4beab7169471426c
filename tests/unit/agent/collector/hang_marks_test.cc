// SPDX-License-Identifier: Apache-2.0
#include "agent/collector/hang_marks.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace rollcall {
namespace {

using Kind = HangMarks::Step::Kind;

constexpr int64_t kSecond = 1'000'000'000;
constexpr int kDaemonA = 0, kDaemonB = 0;
constexpr bool kBroken = true, kOtherwise = false;

v1::HostHangs Hangs(const std::vector<std::pair<std::string, bool>>& incidents) {
  v1::HostHangs hangs;
  for (const auto& [incident, is_broken] : incidents) {
    v1::HostHangs::Hang* hang = hangs.add_hangs();
    hang->set_incident(incident);
    hang->set_is_broken(is_broken);
  }
  return hangs;
}

class HangMarksTest : public testing::Test {
 protected:
  // Takes all steps that are due.
  std::vector<std::pair<Kind, std::string>> Steps() {
    std::vector<std::pair<Kind, std::string>> steps;
    while (const auto step = marks_.Next(now_)) {
      steps.emplace_back(step->kind, step->hang.incident());
      marks_.Done(*step, true, now_);
    }
    return steps;
  }
  void Pass(int64_t seconds) {
    for (int64_t i = 0; i < seconds; ++i) {
      now_ += kSecond;
      EXPECT_TRUE(Steps().empty()) << "after " << i + 1 << " s";
    }
  }

  HangMarks marks_;
  int64_t now_ = 100 * kSecond;
};

using Expected = std::vector<std::pair<Kind, std::string>>;

TEST_F(HangMarksTest, SaysNothingBeforeADaemonDoes) { Pass(200); }

TEST_F(HangMarksTest, RaisesAHangOnce) {
  marks_.Set(&kDaemonA, Hangs({{"a", kBroken}}), now_);
  EXPECT_EQ(Steps(), (Expected{{Kind::kRaise, "a"}}));
  marks_.Set(&kDaemonA, Hangs({{"a", kBroken}}), now_);
  Pass(200);
}

TEST_F(HangMarksTest, ClearsAHangThatIsOverAfterAMinute) {
  marks_.Set(&kDaemonA, Hangs({{"a", kBroken}, {"b", kBroken}}), now_);
  EXPECT_EQ(Steps().size(), 2u);
  marks_.Set(&kDaemonA, Hangs({{"b", kBroken}}), now_);
  Pass(59);
  now_ += kSecond;
  EXPECT_EQ(Steps(), (Expected{{Kind::kClear, "a"}}));
  Pass(200);
}

TEST_F(HangMarksTest, KeepsAHangWhoseDaemonRestarts) {
  marks_.Set(&kDaemonA, Hangs({{"a", kBroken}}), now_);
  EXPECT_EQ(Steps().size(), 1u);
  marks_.Drop(&kDaemonA);
  Pass(30);
  marks_.Set(&kDaemonA, Hangs({}), now_);
  Pass(20);
  marks_.Set(&kDaemonA, Hangs({{"a", kBroken}}), now_);
  Pass(200);
}

TEST_F(HangMarksTest, KeepsAHangThatGoesToAnotherDaemon) {
  marks_.Set(&kDaemonA, Hangs({{"a", kBroken}}), now_);
  EXPECT_EQ(Steps().size(), 1u);
  marks_.Set(&kDaemonB, Hangs({{"a", kBroken}}), now_);
  marks_.Drop(&kDaemonA);
  Pass(200);
}

TEST_F(HangMarksTest, ClearsWhatItSaidWhenADaemonIsGoneForGood) {
  marks_.Set(&kDaemonA, Hangs({{"a", kBroken}}), now_);
  EXPECT_EQ(Steps().size(), 1u);
  marks_.Drop(&kDaemonA);
  Pass(59);
  now_ += kSecond;
  // Also what an earlier run of the agent may have reported.
  EXPECT_EQ(Steps(), (Expected{{Kind::kClear, "a"}, {Kind::kClearAll, ""}}));
}

TEST_F(HangMarksTest, ClearsOnceWhatAnEarlierRunMayHaveSaid) {
  marks_.Set(&kDaemonA, Hangs({}), now_);
  Pass(59);
  now_ += kSecond;
  EXPECT_EQ(Steps(), (Expected{{Kind::kClearAll, ""}}));
  Pass(200);
}

TEST_F(HangMarksTest, ClearsNothingOfAnEarlierRunWhileAHangLasts) {
  marks_.Set(&kDaemonA, Hangs({{"a", kBroken}}), now_);
  EXPECT_EQ(Steps(), (Expected{{Kind::kRaise, "a"}}));
  Pass(200);
}

TEST_F(HangMarksTest, RaisesAgainWhenTheHardwareShowsAnErrorAndTakesThatNotBack) {
  marks_.Set(&kDaemonA, Hangs({{"a", kOtherwise}}), now_);
  EXPECT_EQ(Steps(), (Expected{{Kind::kRaise, "a"}}));
  marks_.Set(&kDaemonA, Hangs({{"a", kBroken}}), now_);
  EXPECT_EQ(Steps(), (Expected{{Kind::kRaise, "a"}}));
  marks_.Set(&kDaemonA, Hangs({{"a", kOtherwise}}), now_);
  Pass(200);
}

TEST_F(HangMarksTest, TriesAgainWhatWasNotTaken) {
  marks_.Set(&kDaemonA, Hangs({{"a", kBroken}}), now_);
  const auto step = marks_.Next(now_);
  ASSERT_TRUE(step.has_value());
  marks_.Done(*step, false, now_);
  Pass(4);
  now_ += kSecond;
  EXPECT_EQ(Steps(), (Expected{{Kind::kRaise, "a"}}));
}

TEST_F(HangMarksTest, ClearsWhatMayHaveBeenTakenThoughTheAnswerWasLost) {
  marks_.Set(&kDaemonA, Hangs({{"a", kBroken}}), now_);
  marks_.Done(*marks_.Next(now_), false, now_);
  marks_.Set(&kDaemonA, Hangs({}), now_);
  Pass(59);
  now_ += kSecond;
  EXPECT_EQ(Steps(), (Expected{{Kind::kClear, "a"}, {Kind::kClearAll, ""}}));
}

TEST_F(HangMarksTest, ARaiseThatIsRefusedForGoodHoldsUpNoOther) {
  marks_.Set(&kDaemonA, Hangs({{"a", kBroken}, {"b", kBroken}, {"c", kBroken}}), now_);
  const auto refused = marks_.Next(now_);
  ASSERT_EQ(refused->hang.incident(), "a");
  marks_.Done(*refused, false, now_);
  EXPECT_EQ(Steps(), (Expected{{Kind::kRaise, "b"}, {Kind::kRaise, "c"}}));
  marks_.Set(&kDaemonA, Hangs({{"a", kBroken}, {"c", kBroken}}), now_);
  for (int i = 0; i < 12; ++i) {
    now_ += 5 * kSecond;
    const auto step = marks_.Next(now_);
    ASSERT_TRUE(step.has_value());
    if (step->kind == Kind::kClear) {
      EXPECT_EQ(step->hang.incident(), "b");
      return;
    }
    marks_.Done(*step, false, now_);
  }
  FAIL() << "b was not cleared";
}

TEST_F(HangMarksTest, RaisesAgainWhatComesBackAfterAClearThatMayHaveBeenTaken) {
  marks_.Set(&kDaemonA, Hangs({{"a", kBroken}}), now_);
  Steps();
  marks_.Set(&kDaemonA, Hangs({}), now_);
  Pass(59);
  now_ += kSecond;
  marks_.Done(*marks_.Next(now_), false, now_);
  marks_.Set(&kDaemonA, Hangs({{"a", kBroken}}), now_);
  Pass(4);
  now_ += kSecond;
  EXPECT_EQ(Steps(), (Expected{{Kind::kRaise, "a"}}));
}

}  // namespace
}  // namespace rollcall
