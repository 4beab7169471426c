// SPDX-License-Identifier: Apache-2.0
// What two stacks and the past of a culprit say of its odd call.
#include "daemon/diagnosis/verdict_departure.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "job_builder.h"

namespace rollcall {
namespace {

using Kind = StackDeparture::Kind;

ProgramFrame InLoop(int line) {
  CodeBlock loop;
  loop.first = 10;
  loop.last = 20;
  return {"train", "/x/train.py", line, true, {loop}};
}

// Steps of an AllReduce at line 12 and a Broadcast at line 14; in the last one rank 3 makes `odd`
// at `line` where the others wait at line 12.
Verdict Judge(CallArgs odd, int line) {
  JobBuilder job(4);
  for (int step = 0; step < 12; ++step) {
    job.Finish(1, AllReduce(100));
    job.Finish(1, Broadcast());
  }
  job.Enter({0, 1, 2}, At(10), AllReduce(100));
  job.Enter({3}, At(10), odd);
  for (const int rank : {0, 3}) {
    job.process(rank).place.at = "/x/train.py:1 in train";
    job.process(rank).place.functions = " train.train ";
    job.process(rank).place.program = {InLoop(rank == 3 ? line : 12)};
    job.process(rank).stacks_ns = At(30);
  }
  const std::vector<Verdict> verdicts = Diagnose(job.state, At(80), Limits());
  EXPECT_FALSE(verdicts.empty());
  return verdicts.empty() ? Verdict() : verdicts.front();
}

TEST(VerdictDepartureTest, ACallOfEachStepIsNotAnExtraCall) {
  const Verdict v = Judge(Broadcast(), 14);
  EXPECT_EQ(v.departure.kind, Kind::kSkipped);
  EXPECT_EQ(v.divergence, DivergenceKind::kSkipped);
  ASSERT_FALSE(v.advice.empty());
  EXPECT_EQ(v.advice.front().id, "skipped-call");
}

TEST(VerdictDepartureTest, ACallThatNoStepHasIsOne) {
  const Verdict v = Judge(AllGather(), 16);
  EXPECT_EQ(v.departure.kind, Kind::kExtra);
  EXPECT_EQ(v.divergence, DivergenceKind::kExtra);
  ASSERT_FALSE(v.advice.empty());
  EXPECT_EQ(v.advice.front().id, "extra-call");
}

// Rank 3 made one more pass from line 30, whose calls met those of the others' next step.
TEST(VerdictDepartureTest, APassFromALineOfItsOwnIsOneTooMany) {
  JobBuilder job(4);
  for (const int rank : {0, 3}) job.process(rank).sites = {"train.py:12", "train.py:30"};
  for (int step = 0; step < 12; ++step) {
    job.Finish(1, AllReduce(100));
    job.Finish(1, Broadcast());
  }
  job.Finish(1, AllReduce(100));
  job.Enter({0, 1, 2}, At(10), Broadcast());
  job.Enter({3}, At(10), AllReduce(100));
  for (const int rank : {0, 3}) {
    for (CallRecord& record : job.member(rank).records) record.site = 1;
    job.process(rank).place.program = {InLoop(rank == 3 ? 12 : 14)};
    job.process(rank).place.functions = " train.train ";
    job.process(rank).stacks_ns = At(30);
  }
  const Verdict skipped = Diagnose(job.state, At(80), Limits()).front();
  EXPECT_EQ(skipped.departure.kind, Kind::kSkipped) << "or a Broadcast too few";
  job.member(3).records[24].site = 2;
  const Verdict v = Diagnose(job.state, At(80), Limits()).front();
  EXPECT_EQ(v.departure.kind, Kind::kExtra);
  EXPECT_NE(std::find(v.evidence.begin(), v.evidence.end(),
                      "rank 3 has made a call at train.py:30, where a rank that waits has made "
                      "none"),
            v.evidence.end());
}

// A sharded model: its forward pass gathers two layers, its backward pass both in reverse and
// reduces their gradients. `alone` runs one more forward pass, whose calls meet those of the
// others' next one. It stands in the forward pass at line 12, the others in the backward pass at
// line 14.
Verdict RunsForwardAlone(int alone, int skips_at) {
  JobBuilder job(4);
  const auto forward = [&] {
    job.Finish(1, AllGather(68));
    job.Finish(1, AllGather(17));
  };
  for (int step = 0; step < 6; ++step) {
    forward();
    job.Finish(1, AllGather(17));
    job.Finish(1, AllGather(68));
    job.Finish(1, AllReduce(34));
    job.Finish(1, AllReduce(136));
  }
  forward();
  for (int rank = 0; rank < 4; ++rank) {
    job.Enter({rank}, At(10), AllGather(rank == alone ? 68 : 17));
    ProgramFrame frame = InLoop(rank == alone ? 12 : 14);
    frame.blocks[0].skips_at = skips_at;
    job.process(rank).place.program = {frame};
    job.process(rank).place.functions =
        rank == alone ? " module.Module._call_impl train.train " : " Tensor.backward train.train ";
    job.process(rank).stacks_ns = At(30);
  }
  const std::vector<Verdict> verdicts = Diagnose(job.state, At(80), Limits());
  EXPECT_FALSE(verdicts.empty());
  return verdicts.empty() ? Verdict() : verdicts.front();
}

TEST(VerdictDepartureTest, AForwardPassOfOneRankIsOneTooMany) {
  for (const int alone : {0, 2}) {
    const Verdict v = RunsForwardAlone(alone, 0);
    EXPECT_EQ(v.departure.kind, Kind::kExtra) << alone;
    EXPECT_EQ(v.divergence, DivergenceKind::kExtra) << alone;
    ASSERT_FALSE(v.advice.empty());
    EXPECT_EQ(v.advice.front().id, "extra-call") << alone;
    EXPECT_NE(
        v.advice.front().text.find("is at line 12 of `train` again, a rank that waits still at "
                                   "line 14: it has made the calls before that line once more"),
        std::string::npos)
        << v.advice.front().text;
  }
}

TEST(VerdictDepartureTest, WhereTheLoopMayGoOnARankHasLeftTheRestOut) {
  const Verdict v = RunsForwardAlone(2, 13);
  EXPECT_EQ(v.departure.kind, Kind::kSkipped);
  ASSERT_FALSE(v.advice.empty());
  EXPECT_EQ(v.advice.front().id, "skipped-call");
}

TEST(VerdictDepartureTest, ReportsNothingOfOldStacks) {
  JobBuilder job(4);
  job.Finish(10);
  job.Enter({0, 1, 2}, At(10));
  job.process(3).place.program = {InLoop(14)};
  const std::vector<Verdict> verdicts = Diagnose(job.state, At(80), Limits());
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts.front().departure.kind, Kind::kUnknown);
}

}  // namespace
}  // namespace rollcall
