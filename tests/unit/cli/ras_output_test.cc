// SPDX-License-Identifier: Apache-2.0
// The text of NCCL's RAS.
#include "cli/ras_output.h"

#include <gtest/gtest.h>

#include "daemon/diagnosis/diagnose.h"

namespace rollcall {
namespace {

constexpr char kText[] = R"(NCCL version 2.26.2 compiled with CUDA 12.6

Job summary
===========

Communicators... (0.00s)
=============

Errors
======

INCOMPLETE
  Missing communicator data from 1 job process
  Process 60004 on node 10.4.109.13 managing GPU 0

Warnings
========

#0-0 (fa93daea854b060b) MISMATCH
  Communicator ranks have different AllGather operation counts
  30 ranks have launched up to operation 641
  2 ranks have launched up to operation 640
  Rank 12 -- GPU 4 managed by process 323032 on node 10.137.190.124
  Rank 13 -- GPU 5 managed by process 323033 on node 10.137.190.124
)";

TEST(RasOutputTest, FindingsAreRead) {
  ASSERT_TRUE(IsRasOutput(kText));
  const std::vector<RasFinding> findings = ReadRasOutput(kText);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].kind, RasFinding::Kind::kIncomplete);
  ASSERT_EQ(findings[0].lost.size(), 1u);
  EXPECT_EQ(findings[0].lost[0].pid, 60004);
  EXPECT_EQ(findings[1].communicator, 0xfa93daea854b060bu);
  EXPECT_EQ(findings[1].operation, "AllGather");
  ASSERT_EQ(findings[1].counts.size(), 2u);
  EXPECT_EQ(findings[1].counts[1].operations, 640u);
  ASSERT_EQ(findings[1].counts[1].named.size(), 2u);
  EXPECT_EQ(findings[1].counts[1].named[0].rank, 12);
  EXPECT_EQ(findings[1].counts[1].named[0].node, "10.137.190.124");
}

TEST(RasOutputTest, FindingsInWords) {
  const std::vector<std::string> lines = RasInWords(ReadRasOutput(kText));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "RAS: no data of process 60004 on 10.4.109.13");
  EXPECT_EQ(lines[1],
            "RAS: different numbers of AllGather calls on fa93daea854b060b: 30 ranks have launched "
            "641; 2 ranks have launched 640: rank 12 (process 323032 on 10.137.190.124), rank 13 "
            "(process 323033 on 10.137.190.124)");
}

TEST(RasOutputTest, TheRanksBehindAreTheCulprits) {
  JobModel model("ras");
  FillModel(ReadRasOutput(kText), &model);
  Limits limits;
  limits.hang_after_ns = limits.suspect_after_ns = limits.absent_for_good_ns = 0;
  const std::vector<Verdict> verdicts = Diagnose(model.state(), 1, limits);
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kMissingRank) << verdicts[0].summary;
  ASSERT_EQ(verdicts[0].culprits.size(), 2u);
  EXPECT_EQ(verdicts[0].culprits[0].rank, 12);
  EXPECT_EQ(verdicts[0].call.op, Op::kAllGather);
}

// RAS names the ranks of the smaller group only. Where it leaves out more, no rank is known.
TEST(RasOutputTest, CountsWithoutTheirRanksFillNothing) {
  JobModel model("ras");
  FillModel(ReadRasOutput("#0-0 (1) MISMATCH\n  3 ranks have launched up to operation 5\n"
                          "  3 ranks have launched up to operation 6\n"),
            &model);
  EXPECT_TRUE(model.state().communicators.empty());
}

TEST(RasOutputTest, EveryCutIsReadOrLeftOut) {
  const std::string text = kText;
  for (size_t size = 0; size < text.size(); ++size) {
    JobModel model("ras");
    FillModel(ReadRasOutput(text.substr(0, size)), &model);
  }
  EXPECT_FALSE(IsRasOutput("a log"));
}

}  // namespace
}  // namespace rollcall
