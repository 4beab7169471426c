// SPDX-License-Identifier: Apache-2.0
// Where a rank's own past must not decide: a rank is late, records are lost, or something else is
// wrong.
#include <gtest/gtest.h>

#include "daemon/diagnosis/diagnose.h"
#include "daemon/rules/rules.h"
#include "steps_of_calls.h"

namespace rollcall {
namespace {

// In each step rank 1 sends to rank 2, then all reduce.
class Exchanges : public StepsOfCalls {
 public:
  explicit Exchanges(int steps) : StepsOfCalls(3) {
    for (int step = 0; step < steps; ++step) Step();
  }
  void Step() {
    Send12();
    job.Issue(2, Recv(1), Next());
    job.CompleteP2p({1, 2});
    Call(AllReduce(100));
    Call(AllReduce(200));
  }
  void Send12(uint64_t count = 64) { job.Issue(1, Send(2, count), Next()); }
};

Verdict First(const StepsOfCalls& steps) {
  const std::vector<Verdict> verdicts = Diagnose(steps.job.state, At(100), Limits());
  EXPECT_FALSE(verdicts.empty());
  return verdicts.empty() ? Verdict() : verdicts[0];
}

// All begin their first evaluation. Rank 2 hangs before it, outside NCCL.
TEST(PastLimitsTest, APeerThatWaitsNowhereIsLate) {
  Exchanges steps(20);
  steps.Send12(4096);
  const Verdict v = First(steps);
  EXPECT_EQ(v.cause, Cause::kUnmatchedP2p) << v.summary;
  EXPECT_EQ(Blamed(v), (Ranks{2})) << v.summary;
}

TEST(PastLimitsTest, ALostRecordIsNotASkippedCall) {
  Exchanges steps(20);
  auto& records = steps.job.member(2).records;
  const auto lost = records.begin() + 3 * 17;
  ASSERT_EQ(lost->args.op, Op::kRecv);
  records.erase(lost, lost + 1);
  steps.Send12();
  // none of rank 2's last calls is a step of its habit without a receive
  steps.Enter({0, 2}, AllGather());
  const Verdict v = First(steps);
  EXPECT_FALSE(Says(v.evidence, "did not this time")) << v.evidence.back();
  EXPECT_EQ(Blamed(v), (Ranks{1, 2})) << v.summary;
}

TEST(PastLimitsTest, AnErrorOfNcclComesFirst) {
  Exchanges steps(20);
  steps.Send12(4096);
  steps.Enter({0}, AllReduce(100));
  steps.job.member(2).async_error = 1;
  EXPECT_EQ(First(steps).cause, Cause::kNcclError);
}

TEST(PastLimitsTest, WhereTrafficIsNotCompleteTheWaiterIsPossibleAtMost) {
  Exchanges steps(20);
  steps.Step();
  steps.job.member(2).traffic.front().receives -= 1;  // a report was lost
  steps.Send12();
  steps.Enter({0, 2}, AllReduce(100));
  const Verdict v = First(steps);
  EXPECT_EQ(v.cause, Cause::kUnmatchedP2p) << v.summary;
  EXPECT_EQ(v.certainty, Certainty::kPossible) << v.summary;
}

TEST(PastLimitsTest, ThereIsNoTieWhileRanksAreOnTheirWay) {
  StepsOfCalls steps(8);
  for (int step = 0; step < 20; ++step) {
    for (const uint64_t count : {100, 200, 300}) steps.Call(AllReduce(count));
  }
  const auto mismatch = [&] {
    const auto verdicts = JudgeMismatches(steps.job.state, steps.job.comm());
    EXPECT_EQ(verdicts.size(), 1u);
    return verdicts.empty() ? Verdict() : verdicts[0];
  };
  steps.Enter({0}, AllGather());     // the first evaluation
  steps.Enter({5}, AllReduce(100));  // skips it
  EXPECT_EQ(Blamed(mismatch()), (Ranks{0, 5}));
  steps.Enter({1, 2, 3, 4, 6, 7}, AllGather());
  EXPECT_EQ(Blamed(mismatch()), (Ranks{5}));
}

}  // namespace
}  // namespace rollcall
