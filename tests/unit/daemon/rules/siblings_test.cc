// SPDX-License-Identifier: Apache-2.0
// Processes that hold several ranks of a communicator, one for each device.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "daemon/diagnosis/diagnose.h"
#include "job_builder.h"

namespace rollcall {
namespace {

using Ranks = std::vector<int32_t>;

// Two processes with two devices each: ranks 0 and 1, 2 and 3. Rank 3 has left out a call.
class SiblingsTest : public testing::Test {
 protected:
  SiblingsTest() {
    job_.AddCommunicator(kAll, "", {0, 0, 1, 1});
    job_.comm().has_siblings = true;
    for (int rank = 0; rank < 4; ++rank) {
      job_.process(rank).holds_several = true;
      job_.member(rank).device = rank % 2;
    }
    job_.state.communicators.erase(kDp);
    job_.Finish(40);
    job_.Enter({0, 1, 2}, At(10));
    job_.process(3).blocked = {{4110, Op::kcudaStreamSynchronize, kAll, At(10), 2}};
    job_.process(3).stacks_ns = At(30);
    job_.process(3).place = {"/x/job.cc:80 in main", "std::thread::join", true, " main "};
  }
  Verdict Judge() {
    const std::vector<Verdict> verdicts = Diagnose(job_.state, At(70), Limits());
    return verdicts.empty() ? Verdict() : verdicts.front();
  }
  static bool Says(const Verdict& v, const std::string& text) {
    return std::any_of(v.evidence.begin(), v.evidence.end(),
                       [&](const std::string& line) { return absl::StrContains(line, text); });
  }

  static constexpr uint64_t kAll = 77;
  JobBuilder job_{2};
};

TEST_F(SiblingsTest, NamesTheRankOfTheCommunicatorAndItsDevice) {
  const Verdict v = Judge();
  EXPECT_EQ(v.cause, Cause::kMissingRank);
  EXPECT_EQ(CulpritRanks(v.culprits), Ranks{3});
  EXPECT_EQ(v.waiting_ranks, (Ranks{0, 1, 2}));
  EXPECT_EQ(v.summary,
            "rank 3 of the communicator (device 1 of process 1; node-1, pid 4001) has not called "
            "AllReduce #40 on communicator \"all ranks\"; 3 ranks have waited 60 s");
}

TEST_F(SiblingsTest, TheWaitOfASiblingIsNotEvidence) {
  const Verdict v = Judge();
  EXPECT_FALSE(Says(v, "cudaStreamSynchronize"));
  EXPECT_TRUE(Says(v, "rank 3: its process uses no CPU time"));
  EXPECT_TRUE(v.places.empty()) << "its thread is not known";
}

// The worker of rank 3 has ended by an exception; its sibling's waits for its GPU.
TEST_F(SiblingsTest, AThreadThatHasFailedExplainsTheRankWhoseThreadIsGone) {
  job_.member(3).records.back().thread = 9;
  Process& process = job_.process(3);
  process.callers = {{8, 4110, ""}, {9, 4111, ""}};
  process.stack_words = " cudaStreamSynchronize worker ";
  process.thread_places = {
      {4110, "", {"/x/job.py:40 in worker", "cudaStreamSynchronize", true, " cuda worker "}}};
  process.thread_failure = {"Thread-2 (worker)", "KeyError: 'broken record' at job.py:57", At(9)};
  const Verdict v = Judge();
  EXPECT_EQ(v.culprits[0].failed_thread, "Thread-2 (worker)");
  ASSERT_FALSE(v.advice.empty());
  EXPECT_EQ(v.advice[0].id, "thread-failed");
  process.thread_places.push_back(
      {4111, "", {"/x/job.py:20 in load", "read", true, " read load "}});
  EXPECT_EQ(Judge().culprits[0].failed_thread, "") << "its own thread is there";
}

TEST_F(SiblingsTest, TheStackOfASiblingGivesNoAdvice) {
  job_.process(3).stack_words = " cudaStreamSynchronize worker ";
  for (const Advice& advice : Judge().advice) EXPECT_NE(advice.id, "waits-for-its-gpu");
}

TEST_F(SiblingsTest, EachRankStandsWhereItsOwnThreadStands) {
  CallRecord& newest = job_.member(3).records.back();
  newest.thread = 9;
  job_.process(3).callers = {{8, 4110, ""}, {9, 4111, ""}};
  job_.process(3).thread_places = {
      {4110, "", {"/x/job.cc:40 in train", "cudaStreamSynchronize", true, " cuda train "}},
      {4111, "", {"/x/job.cc:20 in load", "read", true, " read load "}}};
  job_.process(0).blocked = {{4010, Op::kcudaStreamSynchronize, kAll, At(10), 0}};
  job_.process(0).stacks_ns = At(30);
  job_.process(0).thread_places = {
      {4010, "", {"/x/job.cc:40 in train", "cudaStreamSynchronize", true, " cuda train "}}};
  const Verdict v = Judge();
  ASSERT_EQ(v.places.size(), 1u);
  EXPECT_EQ(v.places[0].at, "/x/job.cc:20 in load");
  EXPECT_EQ(v.waiting_place.at, "/x/job.cc:40 in train");
}

// Rank 2, the other one of that process, waits on another communicator.
TEST_F(SiblingsTest, AWaitOfASiblingElsewhereIsNotAnExcuse) {
  job_.AddCommunicator(78, "tp", {1, 0});
  job_.comm().has_siblings = true;
  job_.member(0).device = job_.member(1).device = 0;
  job_.Finish(4);
  job_.Enter({0}, At(9));
  const Verdict v = Judge();
  const std::vector<Verdict> all = Diagnose(job_.state, At(70), Limits());
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const Verdict& verdict) {
    return verdict.communicator == kAll && CulpritRanks(verdict.culprits) == Ranks{3} &&
           !verdict.is_consequence;
  }));
}

// Ranks 2 and 3, of one process, have each left out a call of a communicator of its own.
TEST_F(SiblingsTest, TheAbsenceOfASiblingExplainsNoOther) {
  job_.state.communicators.erase(kAll);
  for (const uint64_t id : {uint64_t{78}, uint64_t{79}}) {
    const int device = id == 78 ? 0 : 1;
    job_.AddCommunicator(id, "dp", {0, 1});
    job_.comm().has_siblings = true;
    for (const int rank : {0, 1}) job_.member(rank).device = device;
    job_.Finish(4);
    job_.Enter({0}, At(9));
  }
  std::vector<uint64_t> roots;
  for (const Verdict& v : Diagnose(job_.state, At(70), Limits())) {
    if (!v.is_consequence && v.cause == Cause::kMissingRank) roots.push_back(v.communicator);
  }
  EXPECT_TRUE(std::find(roots.begin(), roots.end(), 78) != roots.end());
  EXPECT_TRUE(std::find(roots.begin(), roots.end(), 79) != roots.end());
}

}  // namespace
}  // namespace rollcall
