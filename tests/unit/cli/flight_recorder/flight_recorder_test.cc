// SPDX-License-Identifier: Apache-2.0
// What the rules say of dumps of PyTorch's Flight Recorder.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "recorded_job.h"

namespace rollcall {
namespace {

using nlohmann::json;

TEST_F(FlightRecorderTest, AHealthyJobHasNoHang) {
  WriteRanks([](int, Recorder* r) { r->Call("all_reduce", 8).Call("_all_gather_base", 8); });
  EXPECT_TRUE(Verdicts().empty());
  EXPECT_EQ(warnings_, "");
}

TEST_F(FlightRecorderTest, ARankThatDidNotCallIsMissing) {
  WriteRanks([](int rank, Recorder* r) {
    for (int i = 0; i < 5; ++i) r->Call("all_reduce", 8);
    if (rank != 2) r->Call("all_reduce", 8, false);
  });
  const std::vector<Verdict> verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kMissingRank);
  EXPECT_EQ(Culprits(verdicts[0]), std::vector<int>{2});
  EXPECT_EQ(verdicts[0].position, 5u);
  EXPECT_EQ(verdicts[0].communicator_name, "default_pg");
  const std::string evidence = absl::StrJoin(verdicts[0].evidence, "\n");
  EXPECT_TRUE(absl::StrContains(evidence, "rank 2: call #4 was made at train.py:44 (step)"))
      << evidence;
}

// PyTorch's own tool takes the first file for right, and blames all others.
TEST_F(FlightRecorderTest, TheMinorityIsToBlameAlsoWhenItIsReadFirst) {
  WriteRanks([](int rank, Recorder* r) {
    r->Call("all_reduce", 8);
    r->Call(rank == 0 ? "broadcast" : "all_reduce", 8, false);
  });
  const std::vector<Verdict> verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kOperationMismatch);
  EXPECT_EQ(Culprits(verdicts[0]), std::vector<int>{0});
  EXPECT_EQ(verdicts[0].position, 1u);
}

// The tutorial's case: rank 0 issues one more as the third, and the tool says
// that rank 1 is missing at the fifth.
TEST_F(FlightRecorderTest, AnExtraCallHasItsPosition) {
  WriteRanks([](int rank, Recorder* r) {
    r->Call("all_reduce", 3).Call("all_reduce", 3);
    if (rank == 0) r->Call("broadcast", 3);
    r->Call("all_reduce", 3).Call("all_reduce", 5, rank != 0);
  });
  const std::vector<Verdict> verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kOperationMismatch);
  EXPECT_EQ(Culprits(verdicts[0]), std::vector<int>{0});
  EXPECT_EQ(verdicts[0].position, 2u);
  EXPECT_EQ(verdicts[0].divergence, DivergenceKind::kExtra);
}

TEST_F(FlightRecorderTest, OtherSizesAndTypesAreMismatches) {
  WriteRanks([](int rank, Recorder* r) {
    r->Call("_all_gather_base", rank == 3 ? 9 : 8, false, "0", "Half");
  });
  std::vector<Verdict> verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kArgumentMismatch);
  EXPECT_EQ(verdicts[0].mismatched_fields, std::vector<std::string>{"count"});
  EXPECT_EQ(Culprits(verdicts[0]), std::vector<int>{3});
  WriteRanks([](int rank, Recorder* r) {
    r->Call("all_reduce", 8, false, "0", rank == 1 ? "BFloat16" : "Float");
  });
  verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].mismatched_fields, std::vector<std::string>{"dtype"});
}

// All ranks have moved past the gather, and hang in the next call.
TEST_F(FlightRecorderTest, ACompletedCallWithOtherSizesIsTheRoot) {
  for (const char* operation : {"gather", "all_gather", "broadcast"}) {
    WriteRanks([&](int rank, Recorder* r) {
      r->Call("all_reduce", 8).Call(operation, rank == 2 ? 5 : 4).Call("all_reduce", 8, false);
    });
    const std::vector<Verdict> verdicts = Verdicts();
    ASSERT_FALSE(verdicts.empty());
    EXPECT_EQ(verdicts[0].cause, Cause::kArgumentMismatch) << verdicts[0].summary;
    EXPECT_EQ(Culprits(verdicts[0]), std::vector<int>{2});
    EXPECT_EQ(verdicts[0].position, 1u);
    EXPECT_EQ(verdicts[0].certainty, Certainty::kLikely);
  }
}

TEST_F(FlightRecorderTest, ACompletedCallWithAnotherTypeIsTheRoot) {
  WriteRanks([](int rank, Recorder* r) {
    r->Call("all_gather", 8, true, "0", rank == 1 ? "Half" : "Float").Call("all_reduce", 8, false);
  });
  const std::vector<Verdict> verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].mismatched_fields, std::vector<std::string>{"dtype"});
  EXPECT_EQ(Culprits(verdicts[0]), std::vector<int>{1});
}

// Rank 2's sizes differ, and rank 0 is absent for a reason of its own.
TEST_F(FlightRecorderTest, OtherSizesDoNotExcuseAnotherAbsentRank) {
  WriteRanks([](int rank, Recorder* r) {
    r->Call("broadcast", rank == 2 ? 5 : 4).Call("all_reduce", 8);
    if (rank != 0) r->Call("all_reduce", 8, false);
  });
  const std::vector<Verdict> verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kMissingRank);
  EXPECT_EQ(Culprits(verdicts[0]), std::vector<int>{0});
}

TEST_F(FlightRecorderTest, WhatComesAfterASkippedCallIsAConsequence) {
  WriteRanks([](int rank, Recorder* r) {
    r->Call("all_reduce", 8);
    if (rank != 2) r->Call("all_reduce", 16);
    r->Call("all_reduce", 32).Call("all_reduce", 64).Call("all_reduce", 128, false);
  });
  const std::vector<Verdict> verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].position, 1u) << verdicts[0].summary;
  EXPECT_EQ(verdicts[0].divergence, DivergenceKind::kSkipped);
  EXPECT_EQ(Culprits(verdicts[0]), std::vector<int>{2});
  for (size_t i = 1; i < verdicts.size(); ++i) EXPECT_TRUE(verdicts[i].is_consequence);
}

TEST_F(FlightRecorderTest, WhatAShiftedRankDoesInAnotherGroupIsAConsequence) {
  WriteRanks([](int rank, Recorder* r) {
    r->Group("1", "dp", {0, 1, 2, 3}).Call("all_reduce", 8);
    if (rank == 1) r->Call("broadcast", 8);
    r->Call("all_reduce", 8).Call("all_reduce", 8);
    if (rank != 1) r->Call("all_gather", 8);
    r->Call(rank == 1 ? "broadcast" : "all_reduce", 4, false, "1");
  });
  const std::vector<Verdict> verdicts = Verdicts();
  ASSERT_GE(verdicts.size(), 2u);
  EXPECT_EQ(verdicts[0].communicator_name, "default_pg") << verdicts[0].summary;
  EXPECT_EQ(Culprits(verdicts[0]), std::vector<int>{1});
  EXPECT_TRUE(verdicts[1].is_consequence) << verdicts[1].summary;
}

TEST_F(FlightRecorderTest, TheRankWhoseAllToAllDoesNotMatchIsNamed) {
  WriteRanks([](int rank, Recorder* r) {
    r->Call("all_reduce", 8).Call("all_to_all", 16, false);
    if (rank == 3) r->last()["output_sizes"] = json::array({json::array({17})});
  });
  const std::vector<Verdict> verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kArgumentMismatch) << verdicts[0].summary;
  EXPECT_EQ(Culprits(verdicts[0]), std::vector<int>{3});
  const std::string evidence = absl::StrJoin(verdicts[0].evidence, "\n");
  EXPECT_TRUE(absl::StrContains(evidence,
                                "the ranks together send 64 elements and receive 65; rank 3 does "
                                "not receive as much as it sends"))
      << evidence;
}

TEST_F(FlightRecorderTest, UnevenSplitsThatDoNotMatchAreEvidence) {
  const int64_t sent[] = {16, 20, 12, 16}, received[] = {14, 18, 17, 16};
  WriteRanks([&](int rank, Recorder* r) {
    r->Call("all_to_allv", sent[rank], false);
    r->last()["output_sizes"] = json::array({json::array({received[rank]})});
  });
  const std::vector<Verdict> verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kStalledInFlight);
  const std::string evidence = absl::StrJoin(verdicts[0].evidence, "\n");
  EXPECT_TRUE(absl::StrContains(evidence, "send 64 elements and receive 65")) << evidence;
}

TEST_F(FlightRecorderTest, TheHostIsThatOfTheDumpsEnvironment) {
  WriteRanks([](int rank, Recorder* r) {
    r->dump()["env"] = {{"SLURMD_NODENAME", absl::StrCat("gpu-", rank / 2)}, {"HOSTNAME", "pod"}};
    if (rank != 3) r->Call("all_reduce", 8, false);
  });
  const std::vector<Verdict> verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].culprits[0].host, "gpu-1");
}

TEST_F(FlightRecorderTest, UnevenSplitsAndScattersAreLegal) {
  WriteRanks([](int rank, Recorder* r) {
    r->Call("all_to_all", 100 + rank);
    r->Call("scatter", 8);
    r->last()["input_sizes"] = rank == 0 ? json({{8}, {8}, {8}, {8}}) : json::array();
    r->Call("gather", 8);
    r->last()["output_sizes"] = rank == 0 ? json({{8}, {8}, {8}, {8}}) : json::array();
    r->Call("all_gather", 5 + rank);
    r->last()["output_sizes"] = {{5}, {6}, {7}, {8}};
  });
  EXPECT_TRUE(Verdicts().empty());
}

// What the root's list has for each rank.
json Lists(std::initializer_list<int64_t> counts) {
  json lists = json::array();
  for (const int64_t count : counts) lists.push_back(json::array({count}));
  return lists;
}

// The calls wait behind another one, so it is unknown whether they would end.
TEST_F(FlightRecorderTest, AcceptsAGatherWithTheCountsThatItsRootExpects) {
  for (const bool has_root : {true, false}) {
    WriteRanks(
        [](int rank, Recorder* r) {
          r->Call("all_reduce", 8);
          r->Call("gather", rank == 2 ? 6 : 8, false);
          r->last()["output_sizes"] = rank == 0 ? Lists({8, 8, 6, 8}) : json::array();
        },
        has_root ? std::set<int>() : std::set<int>{0});
    for (const Verdict& v : Verdicts()) {
      EXPECT_NE(v.certainty, Certainty::kCertain) << v.summary;
      EXPECT_TRUE(!has_root || v.cause != Cause::kArgumentMismatch) << v.summary;
    }
    std::filesystem::remove(folder_ / "nccl_trace_rank_0");
  }
}

TEST_F(FlightRecorderTest, AGatherOfAnotherCountThanItsRootExpectsIsAMismatch) {
  WriteRanks([](int rank, Recorder* r) {
    r->Call("gather", rank == 2 ? 6 : 8, false);
    r->last()["output_sizes"] = rank == 0 ? Lists({8, 8, 8, 8}) : json::array();
  });
  const std::vector<Verdict> verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kArgumentMismatch) << verdicts[0].summary;
  EXPECT_EQ(Culprits(verdicts[0]), std::vector<int>{2});
}

TEST_F(FlightRecorderTest, AScatterIsComparedWithItsRootToo) {
  for (const int64_t sent : {6, 8}) {
    WriteRanks([sent](int rank, Recorder* r) {
      r->Call("scatter", rank == 2 ? 6 : 8, false);
      r->last()["input_sizes"] = rank == 0 ? Lists({8, 8, sent, 8}) : json::array();
    });
    const std::vector<Verdict> verdicts = Verdicts();
    ASSERT_FALSE(verdicts.empty());
    EXPECT_EQ(verdicts[0].cause == Cause::kArgumentMismatch, sent == 8) << verdicts[0].summary;
  }
}

TEST_F(FlightRecorderTest, RingsThatWrappedUnequallyAreStillCompared) {
  WriteRanks([](int rank, Recorder* r) {
    r->Skip(rank == 1 ? 40 : 38);
    for (int i = rank == 1 ? 40 : 38; i < 60; ++i) {
      r->Call(i == 50 && rank == 3 ? "reduce" : "all_reduce", 8, i < 50);
    }
  });
  const std::vector<Verdict> verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kOperationMismatch);
  EXPECT_EQ(Culprits(verdicts[0]), std::vector<int>{3});
  EXPECT_EQ(verdicts[0].position, 50u);
  EXPECT_LT(verdicts[0].certainty, Certainty::kCertain);
}

TEST_F(FlightRecorderTest, AMissingDumpGivesAWarningAndItsRankIsNeverACertainCulprit) {
  WriteRanks([](int, Recorder* r) { r->Call("all_reduce", 8, false); }, {1});
  const std::vector<Verdict> verdicts = Verdicts();
  EXPECT_TRUE(absl::StrContains(warnings_, "no dump of rank 1 of 4")) << warnings_;
  ASSERT_FALSE(verdicts.empty());
  EXPECT_LT(verdicts[0].certainty, Certainty::kCertain);
}

TEST_F(FlightRecorderTest, BatchedSendsThatWaitInARingAreADeadlockOnlyWithoutGroups) {
  // Each batch is one group: legal.
  WriteRanks([](int rank, Recorder* r) {
    r->P2p(absl::StrCat("send ", rank, "->", (rank + 1) % 4), 8, false, false);
    r->P2p(absl::StrCat("recv ", rank, "<-", (rank + 3) % 4), 8, false, true);
    r->P2p("coalesced", 0, true, true);
  });
  EXPECT_TRUE(Verdicts().empty());
}

TEST_F(FlightRecorderTest, APeerThatNeverReceivesIsNamed) {
  WriteRanks([](int rank, Recorder* r) {
    r->Call("all_reduce", 8);
    if (rank == 0) r->P2p("send 0->2", 8, false, false);
  });
  const std::vector<Verdict> verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kUnmatchedP2p);
  EXPECT_EQ(Culprits(verdicts[0]), std::vector<int>{2});
}

TEST_F(FlightRecorderTest, ARankThatNeverUsedTheGroupIsNamed) {
  WriteRanks([](int rank, Recorder* r) {
    r->Call("all_reduce", 8);
    r->Group("1", "dp", {1, 3});
    if (rank == 1) r->Call("all_reduce", 8, false, "1");
  });
  const std::vector<Verdict> verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kMissingRank);
  EXPECT_EQ(Culprits(verdicts[0]), std::vector<int>{3});
}

TEST_F(FlightRecorderTest, PeersAreRanksOfTheGroup) {
  for (const int rank : {4, 6}) {
    Recorder recorder;
    recorder.Group("1", "pp", {4, 6});
    if (rank == 4) recorder.P2p("send 0->1", 8, false, false, "1");
    recorder.Call("all_reduce", 1, true, "1");
    Write(absl::StrCat("rank", rank), recorder.Pickle());
  }
  const std::vector<Verdict> verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(Culprits(verdicts[0]), std::vector<int>{6});
}

TEST_F(FlightRecorderTest, AStallNamesTheEvidenceThatDumpsWithoutStartTimesLack) {
  WriteRanks([](int, Recorder* r) { r->Call("all_reduce", 8, false); });
  std::vector<Verdict> verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kStalledInFlight);
  EXPECT_LT(verdicts[0].certainty, Certainty::kCertain);
  // With them the rank whose GPU has not come is reported.
  WriteRanks([](int rank, Recorder* r) {
    r->Call("all_reduce", 8, false);
    if (rank != 3) r->last()["state"] = "started";
  });
  verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kBlockedBeforeStart);
  EXPECT_EQ(Culprits(verdicts[0]), std::vector<int>{3});
}

TEST_F(FlightRecorderTest, GroupsOnWhichRanksDisagreeAreDifferentGroups) {
  for (int rank = 0; rank < 2; ++rank) {
    Recorder recorder;
    recorder.Group("0", "default_pg",
                   rank == 0 ? std::vector<int>{0, 1} : std::vector<int>{0, 1, 2});
    recorder.Call("all_reduce", 8);
    Write(absl::StrCat("rank_", rank), recorder.Pickle());
  }
  Verdicts();
  EXPECT_TRUE(absl::StrContains(warnings_, "the ranks disagree")) << warnings_;
}

TEST_F(FlightRecorderTest, UnknownOperationsAndBackendsAreComparedAllTheSame) {
  WriteRanks([](int rank, Recorder* r) {
    r->Call("quantum_reduce", 8);
    r->last()["profiling_name"] = "xyzccl:quantum_reduce";
    r->Call("all_reduce", 8, false);
    if (rank == 2) r->last()["profiling_name"] = "xyzccl:quantum_reduce";
  });
  const std::vector<Verdict> verdicts = Verdicts();
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, Cause::kOperationMismatch);
  EXPECT_EQ(Culprits(verdicts[0]), std::vector<int>{2});
  EXPECT_TRUE(absl::StrContains(warnings_, "unknown operation \"quantum_reduce\"")) << warnings_;
}

}  // namespace
}  // namespace rollcall
