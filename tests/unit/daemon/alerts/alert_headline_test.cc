// SPDX-License-Identifier: Apache-2.0
// The first line of each message, and what makes an update one.
#include "daemon/alerts/alert_headline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/durations.h"
#include "daemon/alerts/alert_news.h"

namespace rollcall {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr int64_t kOpened = 1'795'895'580;  // 2026-11-28 19:53:00 UTC

AlertMessage Hung(AlertEvent event = AlertEvent::kConfirmed) {
  AlertMessage message;
  message.event = event;
  message.made_ns = (kOpened + 60) * kSecond;
  v1::Incident& incident = message.incident;
  incident.set_id("gpt-16k-1");
  incident.set_job("gpt-16k");
  incident.set_state("confirmed");
  incident.set_ranks(16'384);
  incident.mutable_opened_at()->set_seconds(kOpened + 5);
  incident.mutable_waits_since()->set_seconds(kOpened);
  v1::Verdict* root = incident.add_verdicts();
  root->set_cause("missing_rank");
  root->set_summary("rank 4711 (node-588) is in validate()");
  root->set_waiting_total(16'383);
  v1::Culprit* culprit = root->add_culprits();
  culprit->set_rank(4711);
  culprit->set_at("/x/train.py:212 in validate");
  root->add_advice()->set_id("uneven-inputs");
  return message;
}

TEST(AlertHeadlineTest, SaysJobExtentAndSinceWhenBeforeTheRest) {
  EXPECT_EQ(HeadlineInWords(Hung()),
            "gpt-16k hung: 16,384 GPUs idle since 19:53 UTC: rank 4711 (node-588) is in "
            "validate()");
}

TEST(AlertHeadlineTest, AJobWithoutGpusHasRanks) {
  AlertMessage message = Hung();
  message.incident.mutable_verdicts(0)->mutable_culprits(0)->set_device(-1);
  message.incident.set_ranks(0);  // of an earlier release: those that the verdict names
  message.incident.mutable_verdicts(0)->set_waiting_total(0);
  EXPECT_THAT(HeadlineInWords(message), StartsWith("gpt-16k hung: 1 rank idle since 19:53 UTC: "));
}

TEST(AlertHeadlineTest, NamesTheDayOfAHangThatLastsLong) {
  AlertMessage message = Hung(AlertEvent::kReminder);
  message.made_ns += 24 * 3600 * kSecond;
  EXPECT_THAT(
      HeadlineInWords(message),
      StartsWith(
          "gpt-16k still hangs after 24 h 1 min, and is not acknowledged: 16,384 GPUs idle since "
          "2026-11-28 19:53 UTC: rank 4711"));
}

TEST(AlertHeadlineTest, SaysHowOftenAHangHasComeBack) {
  AlertMessage message = Hung(AlertEvent::kUpdated);
  EXPECT_THAT(HeadlineInWords(message),
              StartsWith("gpt-16k hung, correction of the first message about gpt-16k-1: "));
  message.incident.mutable_repeat()->set_number(2);
  message.incident.mutable_repeat()->set_sentence("2nd time in 1 min, same rank and line");
  EXPECT_THAT(HeadlineInWords(message),
              StartsWith("gpt-16k hung again, 2nd time in 1 min, same rank and line: 16,384 GPUs"));
}

TEST(AlertHeadlineTest, AJobThatFailedNoLongerStandsStill) {
  AlertMessage message = Hung();
  v1::Verdict* root = message.incident.mutable_verdicts(0);
  root->set_cause("rank_died");
  root->set_waiting_total(0);
  EXPECT_EQ(HeadlineInWords(message), "gpt-16k failed: rank 4711 (node-588) is in validate()");
}

TEST(AlertHeadlineTest, AnEndSaysWhetherTheJobGoesOn) {
  AlertMessage message = Hung(AlertEvent::kResolved);
  message.incident.mutable_closed_at()->set_seconds(kOpened + 300);
  message.incident.set_state("ended");
  EXPECT_THAT(HeadlineInWords(message),
              StartsWith("gpt-16k: the job ended while it hung, after 5 min 0 s: rank 4711"));
  message.incident.set_state("resolved");
  EXPECT_THAT(HeadlineInWords(message),
              StartsWith("gpt-16k: resolved, the job goes on after 5 min 0 s: rank 4711"));
}

TEST(AlertHeadlineTest, NothingIsResolvedWhereTheJobHungAgain) {
  AlertMessage message = Hung(AlertEvent::kResolved);
  message.incident.set_state("resolved");
  message.incident.mutable_repeat()->set_later("gpt-16k-7");
  EXPECT_THAT(HeadlineInWords(message), HasSubstr("but the job has hung again (gpt-16k-7)"));
  EXPECT_THAT(HeadlineInWords(message), Not(HasSubstr("resolved")));
}

TEST(AlertHeadlineTest, NamesWhoTakesCareOfIt) {
  AlertMessage message = Hung(AlertEvent::kAcknowledged);
  EXPECT_THAT(HeadlineInWords(message),
              StartsWith("gpt-16k: no operator takes care of gpt-16k-1 any"));
  message.incident.mutable_acknowledged()->set_who("alice");
  EXPECT_THAT(HeadlineInWords(message), StartsWith("gpt-16k: alice takes care of gpt-16k-1: rank"));
}

TEST(AlertHeadlineTest, TheMessageThatHoldsOthersBackSaysSo) {
  AlertMessage message = Hung();
  EXPECT_EQ(NoteInWords(message), "");
  message.incident.mutable_repeat()->set_holds_back(true);
  EXPECT_THAT(NoteInWords(message), HasSubstr("further alerts of this job are held back"));
}

TEST(AlertNewsTest, LineCulpritCauseAdviceAndRepetitionAreNews) {
  const v1::Incident known = Hung().incident;
  std::set<std::string> said = {WhatIsSaid(known)};
  v1::Incident other = known;
  other.mutable_verdicts(0)->mutable_culprits(0)->set_at("/x/train.py:213 in validate");
  said.insert(WhatIsSaid(other));
  other.mutable_verdicts(0)->mutable_culprits(0)->set_rank(4712);
  said.insert(WhatIsSaid(other));
  other.mutable_verdicts(0)->set_cause("rank_died");
  said.insert(WhatIsSaid(other));
  other.mutable_verdicts(0)->mutable_advice(0)->set_id("find-why-it-died");
  said.insert(WhatIsSaid(other));
  other.mutable_repeat()->set_number(2);
  said.insert(WhatIsSaid(other));
  EXPECT_EQ(said.size(), 6u);
}

TEST(AlertNewsTest, TheLengthOfTheWaitIsNotAChange) {
  v1::Incident later = Hung().incident;
  later.mutable_verdicts(0)->set_summary("rank 4711 ...; 16,383 ranks have waited 48 s");
  later.mutable_verdicts(0)->set_waited_seconds(48);
  EXPECT_EQ(WhatIsSaid(later), WhatIsSaid(Hung().incident));
}

}  // namespace
}  // namespace rollcall
