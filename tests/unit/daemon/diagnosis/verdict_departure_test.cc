// SPDX-License-Identifier: Apache-2.0
// What two stacks and the past of a culprit say of its odd call.
#include "daemon/diagnosis/verdict_departure.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
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

// Both are in one line of a loop over epochs, "reduce(train_one_epoch())", and rank 3 is still
// inside.
TEST(VerdictDepartureTest, ARankInTheLoopOfAnEpochHasMoreBatchesThanTheOthers) {
  for (const bool was_before : {false, true}) {
    JobBuilder job(4);
    if (was_before) job.Finish(1, AllGather());
    job.Finish(12, AllReduce(100));
    job.Enter({0, 1, 2}, At(10), AllGather());
    job.Enter({3}, At(10), AllReduce(100));
    for (const int rank : {0, 3}) {
      StackPlace& place = job.process(rank).place;
      place.at = "/x/train.py:1 in train";
      place.functions = " train.train ";
      place.program = {InLoop(12)};
      if (rank == 3)
        place.program.push_back({"one_epoch", "/x/train.py", 15, true, {InLoop(15).blocks}});
      if (rank == 0) place.program.push_back({"reduce", "/x/train.py", 25, true, {}});
      job.process(rank).stacks_ns = At(30);
    }
    const Verdict v = Diagnose(job.state, At(80), Limits()).front();
    EXPECT_EQ(v.departure.kind == Kind::kStays, !was_before);
  }
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

// Two ranks, and so a tie: after ten steps `alone` makes a call in a branch of its own, line 21,
// and the other one is in the loop again.
Verdict JudgeTie(int alone) {
  JobBuilder job(2);
  job.Finish(10, AllReduce(8));
  for (int rank = 0; rank < 2; ++rank) {
    const bool is_alone = rank == alone;
    job.Enter({rank}, At(10), is_alone ? AllGather() : AllReduce(8));
    CodeBlock loop, branch;
    loop.first = 17, loop.last = 21;
    branch.kind = CodeBlock::Kind::kCondition;
    branch.first = 20, branch.last = 21;
    StackPlace& place = job.process(rank).place;
    place.functions = " distributed_c10d.all_reduce train.train ";
    place.program = {{"train", "/x/train.py", 18, true, {loop}}};
    if (is_alone) {
      place.program = {{"train", "/x/train.py", 21, true, {loop, branch}},
                       {"write_cache", "/x/train.py", 8, true, {}}};
    }
    job.process(rank).stacks_ns = At(30);
  }
  const std::vector<Verdict> verdicts = Diagnose(job.state, At(80), Limits());
  EXPECT_FALSE(verdicts.empty());
  return verdicts.empty() ? Verdict() : verdicts.front();
}

TEST(VerdictDepartureTest, InATieTheRankWhoseCallIsNewDeparts) {
  for (const int alone : {0, 1}) {
    const Verdict v = JudgeTie(alone);
    EXPECT_EQ(v.culprits.size(), 2U) << alone;
    EXPECT_EQ(v.departure.kind, Kind::kExtra) << alone;
    ASSERT_FALSE(v.advice.empty());
    EXPECT_EQ(v.advice.front().id, "extra-call") << alone;
    const std::string departs = absl::StrCat("rank ", alone, " is at line 21 of `train`");
    EXPECT_TRUE(absl::StrContains(v.advice.front().text, departs)) << v.advice.front().text;
  }
}

// A backward pass reduces two buckets of gradients in each step. Rank 3 leaves the first one out:
// it is in the second one where the others are in the first. No stack is known.
TEST(VerdictDepartureTest, AnotherBucketOfTheSameStepIsNoStepLess) {
  JobBuilder job(4);
  for (int step = 0; step < 12; ++step) {
    job.Finish(1, AllReduce(340));
    job.Finish(1, AllReduce(120));
  }
  job.Enter({0, 1, 2}, At(10), AllReduce(340));
  job.Enter({3}, At(10), AllReduce(120));
  const std::vector<Verdict> verdicts = Diagnose(job.state, At(80), Limits());
  ASSERT_FALSE(verdicts.empty());
  EXPECT_TRUE(verdicts[0].odd_call_is_usual);
  ASSERT_FALSE(verdicts[0].advice.empty());
  EXPECT_EQ(verdicts[0].advice[0].id, "gradients-differ");
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

// `culprit` and `waiter`: the program's frames of ranks 1 and 0, outermost first. The culprit is in
// a call of PyTorch, unless its functions are given.
Verdict JudgeFrames(Cause cause, std::vector<ProgramFrame> culprit,
                    std::vector<ProgramFrame> waiter, JobBuilder job = JobBuilder(2),
                    const char* functions = " distributed_c10d.all_reduce train.main ") {
  Verdict v;
  v.cause = cause;
  v.communicator = kDp;
  v.culprits.resize(1);
  v.culprits[0].process = v.culprits[0].rank = 1;
  v.places.resize(1);
  v.places[0].functions = functions;
  v.places[0].program = std::move(culprit);
  v.waiting_place.program = std::move(waiter);
  AddDeparture(job.state, &v);
  return v;
}

ProgramFrame Frame(const char* function, int line, std::vector<CodeBlock> blocks = {}) {
  return {function, "/x/train.py", line, true, std::move(blocks)};
}

CodeBlock Block(CodeBlock::Kind kind, int first, int last) {
  CodeBlock block;
  block.kind = kind;
  block.first = first;
  block.last = last;
  return block;
}

// for request in requests: request.wait(), within a step.
TEST(VerdictDepartureTest, AStepPastALoopOverMessagesIsNotPastTheTraining) {
  const CodeBlock loop = Block(CodeBlock::Kind::kLoop, 30, 33);
  const std::vector<ProgramFrame> behind = {InLoop(14), Frame("sum", 50)};
  const std::vector<ProgramFrame> waits = {InLoop(12), Frame("migrate", 32, {loop})};
  EXPECT_EQ(JudgeFrames(Cause::kUnmatchedP2p, behind, waits).departure.kind, Kind::kUnknown);
  EXPECT_EQ(JudgeFrames(Cause::kMissingRank, behind, waits).departure.kind, Kind::kLeftLoop);
}

TEST(VerdictDepartureTest, AFirstCallOfACommunicatorIsLeftOutLikeAnyOther) {
  ProgramFrame clips = InLoop(16);
  clips.blocks.push_back(Block(CodeBlock::Kind::kCondition, 15, 16));
  const Verdict v = JudgeFrames(Cause::kInitIncomplete, {InLoop(12)}, {clips});
  EXPECT_EQ(v.departure.kind, Kind::kSkipped);
  const Verdict loads = JudgeFrames(Cause::kInitIncomplete, {InLoop(12)}, {clips}, JobBuilder(2),
                                    " safetensors.load train.main ");
  EXPECT_EQ(loads.departure.kind, Kind::kUnknown) << "it is in no call, and may come yet";
}

// The branch of the culprit makes a call that all make in each step, on another communicator.
TEST(VerdictDepartureTest, ACallElsewhereThatEachStepHasIsNotAnExtraCall) {
  constexpr uint64_t kStatus = 77;
  const auto judge = [](bool is_usual) {
    JobBuilder job(2);
    job.AddCommunicator(kStatus, "status", {0, 1});
    job.Finish(12, is_usual ? AllGather() : AllReduce());
    job.Enter({1}, At(10), AllGather());
    job.process(1).blocked = {{4001, Op::kAllGather, kStatus, At(10)}};
    job.process(1).sites = {"train.py:24"};
    for (CallRecord& record : job.member(1).records) record.site = 1;
    const CodeBlock branch = Block(CodeBlock::Kind::kCondition, 30, 31);
    return JudgeFrames(Cause::kUnmatchedP2p,
                       {Frame("step", 31, {branch}), Frame("exchange_status", 24)},
                       {Frame("step", 32), Frame("execute", 20)}, job)
        .departure.kind;
  };
  EXPECT_EQ(judge(true), Kind::kSkipped);
  EXPECT_EQ(judge(false), Kind::kExtra);
}

// while not text: text = next(stream), which broadcasts; the others reduce gradients.
TEST(VerdictDepartureTest, OneMorePassOfALoopOfItsOwnIsOneTooMany) {
  JobBuilder job(4);
  for (int step = 0; step < 12; ++step) {
    job.Finish(1, Broadcast());
    job.Finish(1, AllReduce(100));
  }
  job.Finish(1, Broadcast());
  job.Enter({0, 1, 2}, At(10), AllReduce(100));
  job.Enter({3}, At(10), Broadcast());
  const CodeBlock loop = Block(CodeBlock::Kind::kLoop, 30, 33);
  for (const int rank : {0, 3}) {
    StackPlace& place = job.process(rank).place;
    place.functions = " distributed_c10d.broadcast train.train ";
    place.program = {InLoop(12),
                     rank == 3 ? Frame("my_text", 32, {loop}) : Frame("train_step", 40)};
    job.process(rank).stacks_ns = At(30);
  }
  const std::vector<Verdict> verdicts = Diagnose(job.state, At(80), Limits());
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].departure.kind, Kind::kExtra);
  ASSERT_FALSE(verdicts[0].advice.empty());
  EXPECT_EQ(verdicts[0].advice[0].id, "extra-call");
}

}  // namespace
}  // namespace rollcall
