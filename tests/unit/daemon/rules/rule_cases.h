// SPDX-License-Identifier: Apache-2.0
// A table of jobs and the verdict that each must get: what the tests of several rules share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "job_builder.h"

namespace rollcall {

using Ranks = std::vector<int32_t>;

struct RuleCase {
  const char* name;
  std::function<JobState()> job;
  double now;
  Cause cause;
  Ranks blamed;
  Certainty certainty = Certainty::kCertain;
  bool nothing = false;  // no verdict at all
};

inline void PrintTo(const RuleCase& c, std::ostream* out) { *out << c.name; }

// Expects the case's verdict first, and of all others that they are its consequences.
inline void ExpectVerdict(const RuleCase& c) {
  const std::vector<Verdict> verdicts = Diagnose(c.job(), At(c.now), Limits());
  if (c.nothing) {
    EXPECT_TRUE(verdicts.empty()) << verdicts[0].summary;
    return;
  }
  ASSERT_FALSE(verdicts.empty());
  const Verdict& v = verdicts[0];
  EXPECT_STREQ(CauseName(v.cause), CauseName(c.cause)) << v.summary;
  Ranks blamed = CulpritRanks(v.culprits);
  std::sort(blamed.begin(), blamed.end());
  EXPECT_EQ(blamed, c.blamed) << v.summary;
  EXPECT_STREQ(CertaintyName(v.certainty), CertaintyName(c.certainty)) << v.summary;
  EXPECT_FALSE(v.summary.empty());
  EXPECT_FALSE(v.evidence.empty());
  if (c.certainty != Certainty::kCertain) {
    EXPECT_FALSE(v.missing_evidence.empty() && v.cause != Cause::kConcurrentUse) << v.summary;
  }
  for (size_t i = 1; i < verdicts.size(); ++i) {
    EXPECT_TRUE(verdicts[i].is_consequence) << verdicts[i].summary;
  }
}

// Two ranks that have finished four calls.
inline JobBuilder Pair(bool markers = true) {
  JobBuilder job(2, markers);
  job.Finish(4);
  return job;
}

inline std::string NameOfCase(const testing::TestParamInfo<RuleCase>& info) {
  return info.param.name;
}

}  // namespace rollcall
