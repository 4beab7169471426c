// SPDX-License-Identifier: Apache-2.0
// Whether the RAS of a job is asked, and the way from a process to its answer.
#include "agent/ras/ask_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "ras_answers.h"
#include "ras_server.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class AskJobTest : public testing::Test {
 protected:
  // In a recorded /proc, process 7 uses this release of NCCL.
  v1::RasAnswer Ask(const std::string& library, RasQuestion question = {}) {
    tree_.Write("7/maps",
                absl::StrCat("7f0000000000-7f0000001000 r-xp 00000000 08:01 42   ", library, "\n"));
    question.proc_root = tree_.root();
    question.pids = {7};
    return AskRasOfJob(question);
  }

  const TemporaryTree tree_;
};

TEST_F(AskJobTest, AReleaseThatAQuestionCouldEndIsNotAsked) {
  const v1::RasAnswer answer = Ask("/usr/lib/libnccl.so.2.27.3");
  EXPECT_THAT(answer.text(), IsEmpty());
  EXPECT_THAT(answer.error(), HasSubstr("it was not asked, because a question to the RAS of NCCL "
                                        "2.27.3 could end the job"));
  EXPECT_THAT(answer.error(), HasSubstr("--ras=always"));
}

TEST_F(AskJobTest, AsksNoProcessWhileACommunicatorIsCreated) {
  RasQuestion question;
  question.changes_communicators = true;
  EXPECT_THAT(Ask("/usr/lib/libnccl.so.2.29.7", question).error(),
              HasSubstr("creating or ending a communicator"));
}

TEST_F(AskJobTest, WhatSwitchesItOffIsReported) {
  tree_.Write("7/environ", std::string("A=1\0NCCL_RAS_ENABLE=0\0", 22));
  EXPECT_EQ(Ask("/usr/lib/libnccl.so.2.29.7").error(), "it is switched off: NCCL_RAS_ENABLE=0");
  RasQuestion question;
  question.use = RasUse::kNever;
  EXPECT_EQ(Ask("/usr/lib/libnccl.so.2.29.7", question).error(), "it was not asked: --ras=never");
  EXPECT_EQ(AskRasOfJob({}).error(), "no process of the job uses NCCL");
}

// This process is the job: it listens as its RAS would.
TEST_F(AskJobTest, TheJobsOwnSocketIsAsked) {
  const RasServer server(AsNccl({true, "", OneRankBehind()}));
  RasQuestion question;
  question.pids = {getpid()};
  question.address = absl::StrCat("localhost:", server.end().port);
  question.use = RasUse::kAlways;
  const v1::RasAnswer answer = AskRasInTime(question);
  EXPECT_EQ(answer.error(), "");
  EXPECT_EQ(answer.text(), OneRankBehind());
  EXPECT_EQ(answer.address(), *question.address);
  EXPECT_THAT(answer.asked_for(), ElementsAre(getpid()));
}

TEST_F(AskJobTest, ALongAnswerIsCutAndSaysSo) {
  const RasServer server(AsNccl({true, "", OneRankBehind()}));
  RasQuestion question;
  question.pids = {getpid()};
  question.address = absl::StrCat("localhost:", server.end().port);
  question.use = RasUse::kAlways;
  question.limits.most_bytes = 100;
  const v1::RasAnswer answer = AskRasOfJob(question);
  EXPECT_EQ(answer.text(), OneRankBehind().substr(0, 100));
  EXPECT_EQ(answer.error(), "its answer was cut after 100 bytes: the rest is unknown");
}

}  // namespace
}  // namespace rollcall
