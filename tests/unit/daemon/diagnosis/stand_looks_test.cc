// SPDX-License-Identifier: Apache-2.0
// Standstills of jobs that were started without the library, as `rollcall diagnose` judges them.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "standing_job.h"

namespace rollcall {
namespace {

constexpr char kReduces[] = " futex c10d::Work::wait distributed_c10d.all_reduce ";
constexpr char kOnGpu[] = " cudaEventSynchronize train.step ";
// The first call of a group: its id comes by a store, of which rank 0 has the server.
constexpr char kAsksStore[] =
    " __poll c10d::detail::SocketImpl::waitForInput c10d::TCPStore::get "
    "distributed_c10d.barrier ";

// Where a rank stands: its wait, the line of train() that it is in, and a line within that call.
struct Stand {
  const char* wait;
  int32_t line;
  const char* at;
};

CodeBlock Loop(int32_t first, int32_t last) {
  CodeBlock block;
  block.first = first;
  block.last = last;
  return block;
}

// train() has a loop from line 10 to 20, and within it one from line 15 to 18.
struct LookedAtJob : StandingJob {
  explicit LookedAtJob(const std::vector<Stand>& stands) : StandingJob(PlacesOf(stands)) {
    for (size_t i = 0; i < stands.size(); ++i) {
      const int32_t line = stands[i].line;
      ProgramFrame train{"train", "/x/train.py", line, true, {}};
      for (const CodeBlock& block : {Loop(10, 20), Loop(15, 18)}) {
        if (block.first <= line && line <= block.last) train.blocks.push_back(block);
      }
      state.processes[i].place.program = {{"main", "/x/train.py", 90, true, {}}, train};
    }
  }

  static std::vector<RankPlaceOf> PlacesOf(const std::vector<Stand>& stands) {
    std::vector<RankPlaceOf> places;
    for (const Stand& stand : stands) places.push_back({stand.wait, stand.at});
    return places;
  }

  Verdict Look() const {
    Limits limits;
    limits.is_look = true;
    std::vector<Verdict> verdicts = Diagnose(state, At(61), limits);
    EXPECT_EQ(verdicts.size(), 1u);
    return verdicts.empty() ? Verdict() : std::move(verdicts.front());
  }
};

TEST(StandLooksTest, BlamesTheRankAtAnotherLineOfTheFunctionThatAllAreIn) {
  const LookedAtJob job({{kReduces, 12, "/x/model.py:1 in forward"},
                         {kReduces, 12, "/x/model.py:2 in forward"},
                         {kReduces, 12, "/x/model.py:3 in forward"},
                         {kReduces, 14, "/x/log.py:4 in log"}});
  EXPECT_EQ(CulpritsOf(job.Look()), Ranks{3});
}

TEST(StandLooksTest, BlamesTheRankOutsideOfTheLoopThatMostAreIn) {
  const LookedAtJob job({{kReduces, 16, "/x/train.py:16 in train"},
                         {kReduces, 12, "/x/train.py:12 in train"},
                         {kReduces, 16, "/x/train.py:16 in train"},
                         {kReduces, 22, "/x/train.py:22 in train"}});
  EXPECT_EQ(CulpritsOf(job.Look()), Ranks{3});
}

TEST(StandLooksTest, BlamesNobodyMoreThanTheOthersWhereHalfOfThemAreElsewhere) {
  const LookedAtJob job({{kReduces, 12, "/x/train.py:12 in train"},
                         {kReduces, 12, "/x/train.py:12 in train"},
                         {kReduces, 22, "/x/train.py:22 in train"},
                         {kReduces, 22, "/x/train.py:22 in train"}});
  EXPECT_EQ(CulpritsOf(job.Look()).size(), 4u);
}

TEST(StandLooksTest, ARankThatWaitsAtAStoreForACallIsNotAtTheStart) {
  LookedAtJob job({{kReduces, 16, "/x/train.py:16 in train"},
                   {kReduces, 16, "/x/train.py:16 in train"},
                   {kReduces, 16, "/x/train.py:16 in train"},
                   {kAsksStore, 22, "/x/train.py:22 in train"}});
  job.state.processes[3].waits_outside_since_ns = At(10);
  for (Process& process : job.state.processes) process.stack_words = "all_reduce";
  const Verdict verdict = job.Look();
  EXPECT_EQ(verdict.cause, Cause::kStandstill);
  EXPECT_EQ(CulpritsOf(verdict), Ranks{3});
}

TEST(StandLooksTest, TheRankWithTheServerOfAStoreOwesNobodyAKey) {
  LookedAtJob job({{kReduces, 16, "/x/train.py:16 in train"},
                   {kReduces, 16, "/x/train.py:16 in train"},
                   {kAsksStore, 22, "/x/train.py:22 in train"}});
  job.standings[2]->place.other_end = {4000};
  job.standings[2]->place.end = EndKind::kSocket;
  EXPECT_EQ(CulpritsOf(job.Look()), Ranks{2});
}

// The stages of a pipeline wait at their own lines, within a long step.
TEST(StandLooksTest, OfRanksThatAllWaitForTheirGpusTheOneElsewhereIsPossible) {
  const LookedAtJob job({{kOnGpu, 14, "/x/log.py:4 in log"},
                         {kOnGpu, 12, "/x/train.py:12 in train"},
                         {kOnGpu, 12, "/x/train.py:12 in train"}});
  const Verdict verdict = job.Look();
  EXPECT_EQ(CulpritsOf(verdict), Ranks{0});
  EXPECT_EQ(verdict.certainty, Certainty::kPossible);
}

TEST(StandLooksTest, ARankWithAStoreThatWaitsForDataServesNobody) {
  LookedAtJob job({{kQueue.functions, 11, kQueue.at},
                   {kOnGpu, 12, "/x/train.py:12 in train"},
                   {kOnGpu, 12, "/x/train.py:12 in train"}});
  job.standings[0]->has_server = true;
  EXPECT_EQ(CulpritsOf(job.Look()), Ranks{0});
}

}  // namespace
}  // namespace rollcall
