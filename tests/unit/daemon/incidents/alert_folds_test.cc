// SPDX-License-Identifier: Apache-2.0
// A job that hangs, goes on and hangs again: what is one row, and when its end is reported.
#include "daemon/incidents/alert_folds.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/durations.h"

namespace rollcall {
namespace {

v1::Incident Hang(int number, int rank = 3,
                  const std::string& line = "/x/train.py:57 in validate") {
  v1::Incident incident;
  incident.set_id(absl::StrCat("train-", number));
  incident.set_job("train");
  incident.mutable_opened_at()->set_seconds(number);
  v1::Verdict* root = incident.add_verdicts();
  root->set_cause("missing_rank");
  root->set_culprit_ranks(absl::StrCat(rank));
  root->mutable_call()->set_operation("AllReduce");
  v1::Culprit* culprit = root->add_culprits();
  culprit->set_rank(rank);
  culprit->set_at(line);
  return incident;
}

v1::Incident Over(v1::Incident incident, const std::string& state = "resolved") {
  incident.set_state(state);
  return incident;
}

class AlertFoldsTest : public testing::Test {
 protected:
  std::vector<std::string> EndsAt(int64_t seconds) {
    std::vector<std::string> ends;
    for (const v1::Incident& end : folds_.TakeEnds(seconds * kSecond)) ends.push_back(end.id());
    return ends;
  }
  AlertFolds folds_;
};

using Ids = std::vector<std::string>;

TEST_F(AlertFoldsTest, AlertsTheFirstHangAndItsEndAfterAShortCalm) {
  EXPECT_FALSE(folds_.Add(Hang(1), 0).repeat.number() > 0);
  EXPECT_FALSE(folds_.EndsNow(Over(Hang(1)), {}, 10 * kSecond));
  EXPECT_EQ(EndsAt(29), Ids{});
  EXPECT_EQ(EndsAt(30), Ids{"train-1"});
  EXPECT_EQ(EndsAt(1000), Ids{}) << "told once";
}

TEST_F(AlertFoldsTest, TheEndOfAJobIsReportedAtOnce) {
  folds_.Add(Hang(1), 0);
  EXPECT_TRUE(folds_.EndsNow(Over(Hang(1), "ended"), {}, 10 * kSecond));
  EXPECT_EQ(EndsAt(10'000), Ids{});
}

TEST_F(AlertFoldsTest, AHangOfTheSameSignatureContinuesTheAlertsOfTheFirst) {
  folds_.Add(Hang(1), 0);
  folds_.EndsNow(Over(Hang(1)), {}, 10 * kSecond);
  const AlertFolds::Place second = folds_.Add(Hang(2), 20 * kSecond);
  EXPECT_EQ(second.repeat.thread(), "train-1");
  EXPECT_EQ(second.repeat.thread_opened_at().seconds(), 1);
  EXPECT_EQ(second.repeat.first(), "train-1");
  EXPECT_EQ(second.repeat.number(), 2);
  EXPECT_EQ(second.repeat.sentence(), "2nd time in 20 s, same rank and line");
  EXPECT_EQ(second.first_words, "2 times in 20 s, same rank and line");
  EXPECT_EQ(EndsAt(35), Ids{}) << "the end of the first is no news any more";
}

TEST_F(AlertFoldsTest, ReportsResolvedOnceTheJobIsCalm) {
  for (int i = 1; i <= 6; ++i) {
    folds_.Add(Hang(i), i * 60 * kSecond);
    EXPECT_FALSE(folds_.EndsNow(Over(Hang(i)), {}, (i * 60 + 45) * kSecond));
    EXPECT_EQ(EndsAt(i * 60 + 59), Ids{});
  }
  EXPECT_EQ(EndsAt(405 + 119), Ids{});
  const std::vector<v1::Incident> ends = folds_.TakeEnds((405 + 120) * kSecond);
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].id(), "train-1");
  EXPECT_EQ(ends[0].opened_at().seconds(), 1) << "mails find their thread by it";
  EXPECT_EQ(ends[0].repeat().newest(), "train-6");
}

TEST_F(AlertFoldsTest, AHangAfterThatIsAnnouncedAnewWithItsNumber) {
  folds_.Add(Hang(1), 0);
  folds_.EndsNow(Over(Hang(1)), {}, kSecond);
  ASSERT_EQ(EndsAt(21), Ids{"train-1"});
  const AlertFolds::Place second = folds_.Add(Hang(2), 120 * kSecond);
  EXPECT_EQ(second.repeat.thread(), "");
  EXPECT_EQ(second.repeat.sentence(), "2nd time in 2 min, same rank and line");
  folds_.EndsNow(Over(Hang(2)), {}, 130 * kSecond);
  EXPECT_EQ(folds_.Add(Hang(3), 140 * kSecond).repeat.thread(), "train-2");
}

TEST_F(AlertFoldsTest, ARowEndsAfterTenCalmMinutes) {
  folds_.Add(Hang(1), 0);
  folds_.EndsNow(Over(Hang(1)), {}, kSecond);
  EndsAt(30);
  EXPECT_EQ(folds_.Add(Hang(2), 601 * kSecond).repeat.number(), 0);
  folds_.EndsNow(Over(Hang(2)), {}, 602 * kSecond);
  EndsAt(700);
  EndsAt(1300);
  EXPECT_EQ(folds_.jobs(), 0u) << "no memory for what is over";
}

TEST_F(AlertFoldsTest, AnotherAttemptOfTheJobIsInTheSameRow) {
  folds_.Add(Hang(1), 0);
  folds_.EndsNow(Over(Hang(1), "ended"), {}, kSecond);
  v1::Incident again = Hang(2);
  again.set_attempt(1);
  const AlertFolds::Place place = folds_.Add(again, 60 * kSecond);
  EXPECT_EQ(place.repeat.number(), 2);
  EXPECT_EQ(place.repeat.thread(), "") << "people know that the first has ended";
}

constexpr AlertFolds::Ending kRestarts = {false, /*may_restart=*/true};

TEST_F(AlertFoldsTest, TheAttemptThatGoesOnIsTheEndOfTheOneThatFailed) {
  folds_.Add(Hang(1), 0);
  EXPECT_FALSE(folds_.EndsNow(Over(Hang(1), "ended"), kRestarts, 10 * kSecond));
  EXPECT_EQ(EndsAt(20), Ids{});
  folds_.GoOn(JobKey("train", 0), 20 * kSecond);
  EXPECT_EQ(EndsAt(20), Ids{}) << "this is the attempt that failed";
  folds_.GoOn(JobKey("train", 1), 20 * kSecond);
  const std::vector<v1::Incident> ends = folds_.TakeEnds(20 * kSecond);
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].state(), "resolved");
  EXPECT_EQ(ends[0].went_on_in(), 1);
}

TEST_F(AlertFoldsTest, AJobThatIsNotRestartedEndsAfterAMinute) {
  folds_.Add(Hang(1), 0);
  EXPECT_FALSE(folds_.EndsNow(Over(Hang(1), "ended"), kRestarts, 10 * kSecond));
  EXPECT_EQ(EndsAt(69), Ids{});
  EXPECT_EQ(EndsAt(70), Ids{"train-1"});
}

TEST_F(AlertFoldsTest, SaysWhatIsTheSame) {
  folds_.Add(Hang(1), 0);
  EXPECT_EQ(folds_.Add(Hang(2, 5), kSecond).repeat.sentence(), "2nd time in 1 s, same line");
  EXPECT_EQ(folds_.Add(Hang(3, 5, "/x/train.py:58 in validate"), kSecond).repeat.sentence(),
            "3rd time in 1 s, same rank");
}

TEST_F(AlertFoldsTest, AnotherLineAndWithoutLinesAnotherRankIsAnotherHang) {
  folds_.Add(Hang(1), 0);
  EXPECT_EQ(folds_.Add(Hang(2, 3, "/x/train.py:90 in save"), kSecond).repeat.number(), 0);
  folds_.Add(Hang(3, 3, ""), kSecond);
  EXPECT_EQ(folds_.Add(Hang(4, 5, ""), kSecond).repeat.number(), 0);
  EXPECT_EQ(folds_.Add(Hang(5, 5, ""), kSecond).repeat.number(), 2);
}

TEST_F(AlertFoldsTest, NoAlertReportsTheEndOfWhatWasHeldBack) {
  folds_.Add(Hang(1), 0);
  folds_.SetTold(Hang(1), false);
  EXPECT_TRUE(folds_.EndsNow(Over(Hang(1)), {/*is_last=*/true, false}, kSecond));
  EXPECT_EQ(EndsAt(1000), Ids{});
}

TEST_F(AlertFoldsTest, AHangAfterOneThatWasHeldBackHasAlertsOfItsOwn) {
  folds_.Add(Hang(1), 0);
  folds_.SetTold(Hang(1), false);
  EXPECT_EQ(folds_.Add(Hang(2), kSecond).repeat.thread(), "");
}

// A restarted daemon knows no rows.
TEST_F(AlertFoldsTest, AHangInTheMiddleOfItsRowGoesOnAfterARestart) {
  v1::Incident stored = Hang(3);
  stored.mutable_repeat()->set_first("train-1");
  stored.mutable_repeat()->set_number(3);
  stored.mutable_repeat()->set_thread("train-1");
  EXPECT_EQ(folds_.Add(stored, 0).repeat.thread(), "train-1");
  EXPECT_EQ(folds_.Add(Hang(4), kSecond).repeat.number(), 4);
}

}  // namespace
}  // namespace rollcall
