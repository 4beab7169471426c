// SPDX-License-Identifier: Apache-2.0
// The text of NCCL's RAS.
#include "daemon/ras/ras_output.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
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

// The forms of NCCL's ras/client_support.cc for a number that one rank alone has.
TEST(RasOutputTest, OneRankAloneIsOneLine) {
  const std::vector<RasFinding> findings = ReadRasOutput(
      "#0-0 (78db921d1c117b4a) MISMATCH\n"
      "  Communicator ranks have different AllReduce operation counts\n"
      "  6 ranks have launched up to operation 64\n"
      "  Rank 7 has launched up to operation 60 -- GPU 3 managed by process 1650386 on node node1\n"
      "  Rank 2 has not launched any operations -- [process information not found]\n");
  ASSERT_EQ(findings.size(), 1u);
  const std::vector<RasCount>& counts = findings[0].counts;
  ASSERT_EQ(counts.size(), 3u);
  EXPECT_EQ(counts[1].operations, 60u);
  ASSERT_EQ(counts[1].named.size(), 1u);
  EXPECT_EQ(counts[1].named[0].rank, 7);
  EXPECT_EQ(counts[1].named[0].node, "node1");
  EXPECT_EQ(counts[2].operations, 0u);
  EXPECT_EQ(counts[2].named[0].rank, 2);
  EXPECT_EQ(RasInWords(findings),
            std::vector<std::string>{"RAS: different numbers of AllReduce calls on "
                                     "78db921d1c117b4a: 6 ranks have launched 64; 1 rank has "
                                     "launched 60: rank 7 (process 1650386 on node1); 1 rank has "
                                     "launched 0: rank 2"});
}

TEST(RasOutputTest, EachOperationUnderOneHeadingIsAFinding) {
  const std::vector<RasFinding> findings = ReadRasOutput(
      "#0-0 (1) MISMATCH\n"
      "  Communicator ranks have different status\n"
      "  3 ranks have status RUNNING\n"
      "  Rank 3 has status FINALIZE -- GPU 3 managed by process 9 on node n\n"
      "  Communicator ranks have different AllGather operation counts\n"
      "  3 ranks have launched up to operation 5\n"
      "  Rank 3 has launched up to operation 4 -- GPU 3 managed by process 9 on node n\n\n"
      "  Communicator ranks have different AllReduce operation counts\n"
      "  3 ranks have launched up to operation 6\n"
      "  Rank 3 has launched up to operation 7 -- GPU 3 managed by process 9 on node n\n");
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].operation, "AllGather");
  EXPECT_EQ(findings[0].counts.size(), 2u);
  EXPECT_EQ(findings[1].operation, "AllReduce");
  EXPECT_EQ(findings[1].communicator, 1u);
  EXPECT_EQ(findings[1].counts[1].operations, 7u);
}

// RAS names the ranks of the smaller group only. Where it leaves out more, no rank is known.
TEST(RasOutputTest, CountsWithoutTheirRanksFillNothing) {
  JobModel model("ras");
  FillModel(ReadRasOutput("#0-0 (1) MISMATCH\n  3 ranks have launched up to operation 5\n"
                          "  3 ranks have launched up to operation 6\n"),
            &model);
  EXPECT_TRUE(model.state().communicators.empty());
}

// One line of RAS stands for 65,535 ranks.
std::string ManyFindings(int count, const std::string& counts) {
  std::string text;
  for (int i = 1; i <= count; ++i)
    absl::StrAppend(&text, "#0-0 (", absl::Hex(i), ") MISMATCH\n", counts);
  return text;
}

TEST(RasOutputTest, AllFindingsTogetherHaveALimitOfRanks) {
  const std::vector<RasFinding> findings = ReadRasOutput(
      ManyFindings(1000,
                   "  65535 ranks have launched up to operation 5\n"
                   "  Rank 0 has launched up to operation 4 -- GPU 0 managed by process 9 "
                   "on node n\n"));
  ASSERT_EQ(findings.size(), 1000u);
  JobModel model("ras");
  const size_t left_out = FillModel(findings, &model);
  EXPECT_EQ(left_out, 996u);
  EXPECT_EQ(model.state().communicators.size(), 4u);
  EXPECT_LE(model.state().processes.size(), kMostRasRanksOfAll);
  EXPECT_EQ(
      LeftOutInWords(left_out),
      "RAS: 996 findings are left out: one may be of 65536 ranks, and all together of 262144");
  EXPECT_EQ(LeftOutInWords(0), "");
}

TEST(RasOutputTest, OneCommunicatorIsCountedOnce) {
  std::string text;
  for (int i = 0; i < 100; ++i) {
    text +=
        "#0-0 (1) MISMATCH\n  50000 ranks have launched up to operation 5\n"
        "  Rank 0 has launched up to operation 4 -- [process information not found]\n";
  }
  JobModel model("ras");
  EXPECT_EQ(FillModel(ReadRasOutput(text), &model), 0u);
  EXPECT_EQ(model.state().communicators.size(), 1u);
}

TEST(RasOutputTest, NumbersOfRanksThatOverflowAreTooMany) {
  RasFinding finding;
  finding.counts = {{5, SIZE_MAX, {}}, {6, 3, {}}};
  EXPECT_TRUE(CountsByRank(finding).empty());
  RasBudget budget;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(budget.Take(finding));
  finding.counts = {{5, 1 << 16, {}}};
  EXPECT_TRUE(budget.Take(finding)) << "what is left out costs nothing";
}

TEST(RasOutputTest, NamedRanksHaveALimitToo) {
  std::string text;
  for (int i = 0; i < 10; ++i) {
    text += "DEAD\n";
    for (int rank = 0; rank < 40'000; ++rank) text += "Rank 1\n";
  }
  size_t named = 0;
  for (const RasFinding& finding : ReadRasOutput(text)) named += finding.lost.size();
  EXPECT_EQ(named, kMostRasRanksOfAll);
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
