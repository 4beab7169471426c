// SPDX-License-Identifier: Apache-2.0
// Which alerts a silence holds back, how long, and who may begin and end it.
#include "daemon/incidents/silences.h"

#include <gtest/gtest.h>

#include <string>

namespace rollcall {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kNow = kSecondNs * 1'700'000'000;
constexpr int64_t kHour = 3600;

v1::Incident Hang() {
  v1::Incident incident;
  incident.set_id("llm-7b-1");
  incident.set_job("llm-7b");
  incident.set_tenant("research");
  v1::Verdict* root = incident.add_verdicts();
  root->set_cause("missing_rank");
  root->add_culprits()->set_host("node-17");
  root->add_other_culprit_hosts("node-99");
  return incident;
}

v1::Silence For(const std::string& job, const std::string& host = "", const std::string& cause = "",
                const std::string& tenant = "") {
  v1::Silence silence;
  silence.set_job(job);
  silence.set_host(host);
  silence.set_cause(cause);
  silence.set_tenant(tenant);
  return silence;
}

absl::StatusOr<v1::Silence> Add(const v1::Silence& wanted, Silences* silences,
                                int64_t seconds = kHour) {
  return silences->Add(wanted, seconds, "ada", Tenants::All(), kNow);
}

TEST(Fits, AllThatIsSetMustFit) {
  EXPECT_TRUE(Fits(For("llm-7b"), Hang()));
  EXPECT_TRUE(Fits(For("llm-*"), Hang()));
  EXPECT_TRUE(Fits(For("*"), Hang()));
  EXPECT_FALSE(Fits(For("llm-7"), Hang())) << "a name, and no part of one";
  EXPECT_TRUE(Fits(For("", "node-1?"), Hang()));
  EXPECT_TRUE(Fits(For("", "node-99"), Hang())) << "of very many culprits";
  EXPECT_FALSE(Fits(For("llm-*", "node-18"), Hang()));
  EXPECT_TRUE(Fits(For("", "", "missing_rank"), Hang()));
  EXPECT_FALSE(Fits(For("llm-7b", "", "rank_died"), Hang()));
  EXPECT_TRUE(Fits(For("*", "", "", "research"), Hang()));
  EXPECT_FALSE(Fits(For("*", "", "", "default"), Hang()));
}

TEST(SilencesTest, OneLastsUntilItsEnd) {
  Silences silences;
  const auto silence = Add(For("llm-*"), &silences);
  ASSERT_TRUE(silence.ok()) << silence.status();
  EXPECT_EQ(silence->who(), "ada");
  EXPECT_EQ(silence->until().seconds(), 1'700'000'000 + kHour);
  EXPECT_NE(silences.Find(Hang(), kNow), nullptr);
  EXPECT_NE(silences.Find(Hang(), kNow + kHour * kSecondNs - 1), nullptr);
  EXPECT_EQ(silences.Find(Hang(), kNow + kHour * kSecondNs), nullptr);
  EXPECT_EQ(silences.Count(kNow), 1u);
  EXPECT_EQ(silences.Count(kNow + kHour * kSecondNs), 0u);
}

TEST(SilencesTest, TheOneThatEndsLastHoldsTheAlertsBack) {
  Silences silences;
  const auto first = Add(For("llm-*"), &silences, kHour);
  const auto second = Add(For("", "node-17"), &silences, 3 * kHour);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(first->id(), second->id());
  EXPECT_EQ(silences.Find(Hang(), kNow)->id(), second->id());
  const auto list = silences.List(Tenants::All(), kNow);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].id(), first->id()) << "the one that ends next comes first";
}

TEST(SilencesTest, EndedOnesHoldBackNothingAndCannotBeEndedAgain) {
  Silences silences;
  const auto silence = Add(For("llm-*"), &silences);
  ASSERT_TRUE(silence.ok());
  const auto ended = silences.End(silence->id(), Tenants::All(), kNow + kSecondNs);
  ASSERT_TRUE(ended.ok());
  EXPECT_EQ(ended->until().seconds(), 1'700'000'001);
  EXPECT_EQ(silences.Find(Hang(), kNow + kSecondNs), nullptr);
  const auto again = silences.End(silence->id(), Tenants::All(), kNow + kSecondNs);
  EXPECT_TRUE(absl::IsNotFound(again.status()));
  EXPECT_NE(std::string(again.status().message()).find("rollcall silence"), std::string::npos);
}

TEST(SilencesTest, RefusesSilencesWithoutAScopeOrWithAWrongLength) {
  Silences silences;
  EXPECT_TRUE(absl::IsInvalidArgument(Add(For(""), &silences).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Add(For("", "", "", "research"), &silences).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Add(For("*"), &silences, 59).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(Add(For("*"), &silences, kLongestSilenceSeconds + 1).status()));
  EXPECT_TRUE(Add(For("*"), &silences, kLongestSilenceSeconds).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(Add(For("  "), &silences).status()));
  const auto unknown = Add(For("", "", "missing*"), &silences);
  EXPECT_TRUE(absl::IsInvalidArgument(unknown.status()));
  EXPECT_NE(std::string(unknown.status().message()).find("causes are "), std::string::npos);
  EXPECT_NE(std::string(unknown.status().message()).find("rank_died"), std::string::npos);
  EXPECT_TRUE(absl::IsInvalidArgument(Add(For("*", "", "", "*"), &silences).status()));
  EXPECT_TRUE(Add(For(std::string(kMostWordBytes, 'x')), &silences).ok());
  EXPECT_TRUE(
      absl::IsOutOfRange(Add(For(std::string(kMostWordBytes + 1, 'x')), &silences).status()));
  v1::Silence wordy = For("*");
  wordy.set_comment(std::string(kMostCommentBytes + 1, 'x'));
  EXPECT_TRUE(absl::IsOutOfRange(Add(wordy, &silences).status()));
}

TEST(SilencesTest, WhoActsForSomeTenantsSilencesOnlyThese) {
  Silences silences;
  const Tenants research = Tenants::Only({"research", "speech"});
  const auto add = [&](const v1::Silence& wanted, const Tenants& tenants) {
    return silences.Add(wanted, kHour, "bob", tenants, kNow);
  };
  const auto all = add(For("*"), research);
  EXPECT_TRUE(absl::IsPermissionDenied(all.status()));
  EXPECT_NE(std::string(all.status().message()).find("such as research"), std::string::npos);
  EXPECT_TRUE(absl::IsPermissionDenied(add(For("*", "", "", "vision"), research).status()));
  const auto own = add(For("*", "", "", "research"), research);
  const auto of_all = add(For("*"), Tenants::All());
  const auto of_vision = add(For("*", "", "", "vision"), Tenants::All());
  ASSERT_TRUE(own.ok() && of_all.ok() && of_vision.ok());
  EXPECT_EQ(silences.List(research, kNow).size(), 2u) << "its own, and the one of all";
  EXPECT_TRUE(absl::IsNotFound(silences.End(of_all->id(), research, kNow).status()));
  EXPECT_TRUE(absl::IsNotFound(silences.End(of_vision->id(), research, kNow).status()));
  EXPECT_TRUE(silences.End(own->id(), research, kNow).ok());
  const auto alone = add(For("*"), Tenants::Only({"vision"}));
  ASSERT_TRUE(alone.ok()) << "who has one tenant need not name it";
  EXPECT_EQ(alone->tenant(), "vision");
}

TEST(SilencesTest, ThereIsALimitThatEndedOnesDoNotCountFor) {
  Silences silences;
  for (size_t i = 0; i < kMostSilences; ++i) ASSERT_TRUE(Add(For("*"), &silences).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Add(For("*"), &silences).status()));
  EXPECT_TRUE(silences.Add(For("*"), kHour, "ada", Tenants::All(), kNow + kHour * kSecondNs).ok());
}

TEST(SilencesTest, ThoseOfOneTenantLeaveRoomToThoseOfOthers) {
  Silences silences;
  const auto count = [&silences](const std::string& tenant) {
    size_t added = 0;
    while (silences.Add(For("*"), kHour, "ada", Tenants::Only({tenant}), kNow).ok()) ++added;
    return added;
  };
  EXPECT_EQ(count("research"), 375u);
  const auto refused = silences.Add(For("*"), kHour, "ada", Tenants::Only({"research"}), kNow);
  EXPECT_EQ(
      refused.status().message(),
      "there are 375 silences, and too many of them are for tenant research; end one of these "
      "first");
  EXPECT_EQ(count("default"), 94u);
  EXPECT_TRUE(Add(For("*"), &silences).ok());
}

TEST(SilencesTest, ARestartedDaemonHasThoseOfTheEarlierOne) {
  Silences earlier;
  ASSERT_TRUE(Add(For("llm-*"), &earlier).ok());
  Silences silences;
  silences.Restore(earlier.List(Tenants::All(), kNow));
  ASSERT_NE(silences.Find(Hang(), kNow), nullptr);
  const auto next = Add(For("*"), &silences);
  ASSERT_TRUE(next.ok());
  EXPECT_EQ(silences.Count(kNow), 2u) << "a new id";
}

TEST(SilencesTest, WhatOneDaemonBeginsOrEndsTheOthersTakeOver) {
  Silences here("a"), there("b");
  const auto silence = Add(For("llm-*"), &here);
  ASSERT_TRUE(silence.ok());
  EXPECT_EQ(silence->id(), "silence-1700000000-a") << "no two daemons choose the same";
  const Silences::Merged first = there.Merge({*silence}, kNow);
  ASSERT_EQ(first.begun.size(), 1u);
  EXPECT_TRUE(first.has_changed);
  EXPECT_NE(there.Find(Hang(), kNow), nullptr);
  EXPECT_FALSE(there.Merge({*silence}, kNow).has_changed);
  v1::Silence counted = *silence;
  counted.set_incidents(3);
  EXPECT_TRUE(there.Merge({counted}, kNow).has_changed);
  EXPECT_EQ(there.Find(Hang(), kNow)->incidents(), 3);
  const auto ended = there.End(silence->id(), Tenants::All(), kNow + kSecondNs);
  ASSERT_TRUE(ended.ok());
  EXPECT_TRUE(here.Merge({*ended}, kNow + 2 * kSecondNs).has_changed);
  EXPECT_EQ(here.Find(Hang(), kNow + 2 * kSecondNs), nullptr);
}

TEST(SilencesTest, ReturnsAnEndThatAnotherDaemonMissed) {
  Silences silences;
  const auto silence = Add(For("llm-*"), &silences);
  ASSERT_TRUE(silence.ok());
  ASSERT_TRUE(silences.End(silence->id(), Tenants::All(), kNow + kSecondNs).ok());
  const Silences::Merged merged = silences.Merge({*silence}, kNow + 2 * kSecondNs);
  EXPECT_EQ(silences.Find(Hang(), kNow + 2 * kSecondNs), nullptr);
  ASSERT_EQ(merged.lost_ends.size(), 1u);
  EXPECT_EQ(merged.lost_ends[0].until().seconds(), 1'700'000'001);
}

}  // namespace
}  // namespace rollcall
