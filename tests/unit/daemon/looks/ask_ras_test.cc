// SPDX-License-Identifier: Apache-2.0
// Whom to ask about a job that stands, and what the answer does to the finding.
#include "daemon/looks/ask_ras.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "look_builder.h"

namespace rollcall {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Outcome = LookedAtJob::Outcome;

const SeenStack kAtTheDevice = {{{"cuStreamSynchronize", ""}, {"synchronize", "/x/train.py", 20}}};
const SeenStack kInInit = {{{"ncclCommInitRankConfig", ""}, {"setup", "/x/train.py", 3}}};
const SeenStack kElsewhere = {{{"clock_nanosleep", ""}, {"validate", "/x/train.py", 50}}};

// Ranks with NCCL at these places.
v1::HostLook Host(const std::vector<SeenStack>& places) {
  LookBuilder builder;
  for (size_t rank = 0; rank < places.size(); ++rank) {
    builder
        .Add(static_cast<int32_t>(rank), {places[rank], places[rank], places[rank]},
             static_cast<int32_t>(places.size()))
        ->add_libraries("nccl");
  }
  return builder.look;
}

// Each rank of the job has launched so many AllReduces.
v1::RasAnswer Counts(const std::vector<int>& launched) {
  std::vector<std::string> ranks;
  for (size_t rank = 0; rank < launched.size(); ++rank) {
    ranks.push_back(absl::StrCat(
        "{\"rank\": ", rank,
        ", \"host\": \"10.0.0.1\", \"pid\": ", kFirstPid + static_cast<int>(rank),
        ", \"cuda_dev\": 0, \"collective_counts\": {\"AllReduce\": ", launched[rank], "}}"));
  }
  v1::RasAnswer answer;
  answer.set_text(
      absl::StrCat("{\"nccl_version\": \"2.29.2\", \"communicators\": [{\"hash\": "
                   "\"0xa\", \"ranks\": [",
                   absl::StrJoin(ranks, ", "), "]}]}"));
  return answer;
}

struct Finding {
  LookedAtJob job;
  std::vector<RasPlace> asked;
  int pauses = 0;
};

// `second`: if it is asked again.
Finding Find(const v1::HostLook& look, const v1::RasAnswer& answer,
             const std::optional<v1::RasAnswer>& second = std::nullopt) {
  Finding finding;
  std::vector<v1::HostLook> looks = {look};
  std::vector<LookedAtJob> jobs = JudgeLooks(looks);
  AskRasOfJobs(
      looks, &jobs,
      [&](const RasPlace& place) {
        finding.asked.push_back(place);
        return finding.asked.size() > 1 && second.has_value() ? *second : answer;
      },
      [&finding] { ++finding.pauses; });
  EXPECT_THAT(jobs, SizeIs(1));
  finding.job = jobs.front();
  return finding;
}

TEST(AskRasTest, AJobThatStandsIsAskedOnce) {
  v1::HostLook look = Host({kAtTheDevice, kAtTheDevice, kElsewhere});
  look.mutable_processes(0)->set_ras_address("localhost:9");
  const Finding finding = Find(look, Counts({5, 5, 4}));
  ASSERT_THAT(finding.asked, SizeIs(1));
  EXPECT_THAT(finding.asked[0].pids, ElementsAre(kFirstPid + 1, kFirstPid + 2));
  EXPECT_EQ(finding.asked[0].address, "");
  EXPECT_FALSE(finding.asked[0].changes_communicators);
  EXPECT_EQ(finding.job.outcome, Outcome::kHangs);
  ASSERT_THAT(finding.job.incident.verdicts(), testing::Not(IsEmpty()));
  EXPECT_EQ(finding.job.incident.verdicts(0).culprit_ranks(), "2");
  EXPECT_EQ(finding.job.incident.verdicts(0).certainty(), "likely");
}

// All ranks wait for the device: the stacks do not show it.
TEST(AskRasTest, CountsTellWhatStacksCannot) {
  const Finding finding = Find(Host({kAtTheDevice, kAtTheDevice, kAtTheDevice}), Counts({5, 4, 5}));
  EXPECT_EQ(finding.job.outcome, Outcome::kHangs);
  ASSERT_THAT(finding.job.incident.verdicts(), testing::Not(IsEmpty()));
  const v1::Verdict& verdict = finding.job.incident.verdicts(0);
  EXPECT_EQ(verdict.cause(), "missing_rank");
  EXPECT_EQ(verdict.certainty(), "possible");
  EXPECT_EQ(verdict.culprit_ranks(), "1");
  EXPECT_EQ(finding.job.why, "");
  EXPECT_THAT(finding.asked, SizeIs(2));
  EXPECT_EQ(finding.pauses, 1);
  EXPECT_GT(finding.job.incident.confirmed_at().seconds(), 0);
}

// Ranks that enqueue a step differ for a moment.
TEST(AskRasTest, CountsThatGoOnAreNotAHang) {
  const Finding finding =
      Find(Host({kAtTheDevice, kAtTheDevice, kAtTheDevice}), Counts({5, 4, 5}), Counts({9, 9, 8}));
  EXPECT_EQ(finding.job.outcome, Outcome::kGoesOn);
  EXPECT_THAT(finding.job.incident.verdicts(), IsEmpty());
  EXPECT_THAT(finding.job.why, HasSubstr("counted other calls"));
}

TEST(AskRasTest, WithoutASecondAnswerItCannotBeTold) {
  v1::RasAnswer silent;
  silent.set_error("nobody listens");
  const Finding finding =
      Find(Host({kAtTheDevice, kAtTheDevice, kAtTheDevice}), Counts({5, 4, 5}), silent);
  EXPECT_EQ(finding.job.outcome, Outcome::kCannotTell);
  EXPECT_THAT(finding.job.incident.verdicts(), IsEmpty());
}

// It may create a communicator, and then a query could end the job.
TEST(AskRasTest, ARankWithoutAStackMayCreateACommunicator) {
  v1::HostLook look = Host({kAtTheDevice, kElsewhere});
  for (v1::StackSample& sample : *look.mutable_processes(0)->mutable_samples()) {
    sample.mutable_stack()->clear_threads();
  }
  const std::vector<v1::HostLook> looks = {look};
  EXPECT_TRUE(ChooseRasPlace(looks, GroupLooks(looks).at(0))->changes_communicators);
  v1::HostLook silent;
  silent.set_host("node-2");
  silent.set_error("no answer");
  const std::vector<v1::HostLook> two = {Host({kAtTheDevice, kElsewhere}), silent};
  EXPECT_TRUE(ChooseRasPlace(two, GroupLooks(two).at(0))->changes_communicators);
}

// A daemon has asked, and who judges its looks asks no one.
TEST(AskRasTest, TheAnswersInALookAreEachUsedOnce) {
  v1::HostLook look = Host({kAtTheDevice, kAtTheDevice, kAtTheDevice});
  for (const std::vector<int>& counts : {std::vector<int>{5, 4, 5}, {9, 9, 8}}) {
    v1::RasAnswer answer = Counts(counts);
    for (int rank = 0; rank < 3; ++rank) answer.add_asked_for(kFirstPid + rank);
    *look.add_ras() = std::move(answer);
  }
  EXPECT_THAT(JudgeWithRas({look}).at(0).why, HasSubstr("counted other calls"));
  *look.mutable_ras(1)->mutable_text() = look.ras(0).text();
  EXPECT_EQ(JudgeWithRas({look}).at(0).incident.verdicts(0).culprit_ranks(), "1");
  look.mutable_ras(0)->set_asked_for(0, 1);  // of other processes
  look.mutable_ras()->RemoveLast();
  EXPECT_THAT(JudgeWithRas({look}).at(0).unseen, Contains(HasSubstr("at other daemons")));
}

TEST(AskRasTest, FramesThatCreateOrEndACommunicator) {
  v1::ProcessStack stack;
  EXPECT_FALSE(IsInCommunicatorLife(stack));
  stack.add_threads()->add_frames()->set_function("ncclAllReduce");
  EXPECT_FALSE(IsInCommunicatorLife(stack));
  stack.add_threads()->add_frames()->set_function("ncclCommInitRankConfig");
  EXPECT_TRUE(IsInCommunicatorLife(stack));
}

TEST(AskRasTest, AJobThatGoesOnIsNotAsked) {
  LookBuilder builder;
  SeenStack second = kElsewhere;
  second.frames[0].function = "read";
  second.frames[1].line = 51;
  second.cpu_seconds = 5;
  for (int rank = 0; rank < 2; ++rank)
    builder.Add(rank, {kElsewhere, second, kElsewhere}, 2)->add_libraries("nccl");
  EXPECT_THAT(Find(builder.look, Counts({1, 2})).asked, IsEmpty());
}

TEST(AskRasTest, AJobWithoutNcclIsNotAsked) {
  v1::HostLook look = Host({kAtTheDevice, kAtTheDevice, kElsewhere});
  for (v1::ProcessLook& process : *look.mutable_processes()) process.clear_libraries();
  EXPECT_THAT(Find(look, Counts({5, 5, 4})).asked, IsEmpty());
}

TEST(AskRasTest, TheCreationOfACommunicatorIsSeen) {
  const std::vector<v1::HostLook> looks = {Host({kInInit, kElsewhere})};
  const std::vector<LookGroup> groups = GroupLooks(looks);
  ASSERT_THAT(groups, SizeIs(1));
  const auto place = ChooseRasPlace(looks, groups[0]);
  ASSERT_TRUE(place.has_value());
  EXPECT_TRUE(place->changes_communicators);
}

TEST(AskRasTest, WhyThereIsNoAnswerIsReported) {
  v1::RasAnswer answer;
  answer.set_error("no program listens at port 28028");
  const Finding finding = Find(Host({kAtTheDevice, kAtTheDevice, kAtTheDevice}), answer);
  EXPECT_EQ(finding.job.outcome, Outcome::kCannotTell);
  EXPECT_THAT(finding.job.unseen, Contains("NCCL's RAS: no program listens at port 28028"));
}

}  // namespace
}  // namespace rollcall
