// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/last_sign.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "job_builder.h"

namespace rollcall {
namespace {

// Rank 3 is absent from a call that the others entered at second 10.
JobBuilder ReadFromFiles() {
  JobBuilder job(4);
  job.Finish(24);
  job.Enter({0, 1, 2}, At(10));
  job.state.offline = true;
  return job;
}

Limits AtOnce() {
  Limits limits;
  limits.hang_after_ns = limits.suspect_after_ns = limits.absent_for_good_ns = 0;
  return limits;
}

std::string SentenceOf(const JobState& job) {
  const std::vector<Verdict> verdicts = Diagnose(job, LastSignNs(job), AtOnce());
  return verdicts.empty() ? "" : verdicts[0].summary;
}

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

TEST(LastSignTest, WithoutALaterSignTheLengthOfTheWaitIsNotKnown) {
  const JobBuilder job = ReadFromFiles();
  EXPECT_EQ(LastSignNs(job.state), At(10));
  EXPECT_TRUE(EndsWith(SentenceOf(job.state), "; 3 ranks wait")) << SentenceOf(job.state);
}

TEST(LastSignTest, AWaitLastedAtLeastUpToTheLastSign) {
  JobBuilder job = ReadFromFiles();
  job.Exit(0, At(550));
  job.AddCommunicator(7, "other", {3});
  EXPECT_EQ(LastSignNs(job.state), At(550));
  const std::string text = SentenceOf(job.state);
  EXPECT_TRUE(EndsWith(text, "2 ranks have waited at least 9 min 0 s")) << text;
}

TEST(LastSignTest, AnEmptyJobGaveNone) { EXPECT_EQ(LastSignNs(JobState()), 0); }

}  // namespace
}  // namespace rollcall
