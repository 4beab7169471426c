// SPDX-License-Identifier: Apache-2.0
// What one side does that the other does not, and on which side of the loop each stands.
#include "daemon/diagnosis/advice_departures.h"

#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "advice_verdicts.h"

namespace rollcall {
namespace {

// A stripped interpreter shows no function for input().
TEST(AdviceDeparturesTest, ATerminalIsAPrompt) {
  for (const auto& [channel, functions, is_prompt] :
       std::vector<std::tuple<const char*, const char*, bool>>{
           {"wait_woken", "read train.main", true},
           {"n_tty_read", "train.main", true},
           {"wait_woken", "recv train.main", false},
           {"pipe_read", "read train.main", false}}) {
    Verdict v = MissingAt(functions);
    v.culprits[0].wait_channel = channel;
    EXPECT_EQ(Has(AdviceFor(v), "debugger-prompt"), is_prompt) << channel << " " << functions;
  }
}

// Code under `if rank == 0:` is the likelier reason on rank 0, and an early end of the loop on
// others.
TEST(AdviceDeparturesTest, ABarrierOfRank0AloneIsACallOfItsOwn) {
  Verdict v = Standing(Mismatch(Cause::kArgumentMismatch, AllReduce(1), AllReduce(), 10, {"count"}),
                       "distributed_c10d.barrier train.main", "_tensor.Tensor.backward train.main");
  EXPECT_EQ(AdviceFor(v).front().id, "uneven-inputs");
  v.culprits[0].rank = 0;
  EXPECT_EQ(AdviceFor(v).front().id, "extra-call");
}

TEST(AdviceDeparturesTest, WhoLeftTheLoopOfAFrameworkHadFewerSteps) {
  const Verdict v =
      Standing(Meeting(AllGather(), AllReduce()), "trainer.Trainer.evaluate train.main",
               "_tensor.Tensor.backward trainer.Trainer.train train.main");
  EXPECT_EQ(AdviceFor(v).front().id, "uneven-inputs");
  const Verdict inside =
      Standing(Meeting(AllGather(), AllReduce()), "trainer.Trainer.evaluate trainer.Trainer.train",
               "_tensor.Tensor.backward trainer.Trainer.train train.main");
  EXPECT_EQ(AdviceFor(inside).front().id, "validates-alone");
}

TEST(AdviceDeparturesTest, AForwardPassMeetsABackwardPass) {
  Verdict v =
      Standing(Mismatch(Cause::kArgumentMismatch, AllGather(17), AllGather(), 39, {"count"}),
               "_fsdp_state.FSDPState._pre_forward module.Module._call_impl train.main",
               "_tensor.Tensor.backward train.main");
  EXPECT_EQ(AdviceFor(v).front().id, "skipped-call") << "a backward pass";
  v.culprits[0].rank = 0;
  EXPECT_EQ(AdviceFor(v).front().id, "extra-call") << "a validation";
}

// The rank was late when it raised, and the position of a send counts collectives only.
TEST(AdviceDeparturesTest, AStageThatRaisedIsNeitherLateNorInItsSetup) {
  Verdict v = Make(Cause::kRankExited, {Op::kRecv}, 0);
  v.late = true;
  v.culprits[0].error = "ValueError: not finite";
  const std::vector<Advice> advice = AdviceFor(v);
  EXPECT_EQ(advice.front().id, "raised-an-exception");
  EXPECT_FALSE(Has(advice, "late-rank"));
  EXPECT_FALSE(Has(advice, "rank0-only-setup"));
}

// torch names a group by the number of calls of new_group(), so ranks that skip one look for
// others.
TEST(AdviceDeparturesTest, ARankThatWaitsForAnIdHasAnotherNumber) {
  Verdict v = Standing(Make(Cause::kInitIncomplete, {Op::kCommInitRankConfig}, 0),
                       "c10d::TCPStore::doGet Communicator.join distributed_c10d.all_reduce",
                       "nccl.init_rank Communicator.join distributed_c10d.all_reduce");
  EXPECT_EQ(AdviceFor(v).front().id, "split-on-all-ranks");
  v.places[0].functions = " queue.Queue.get train.main ";
  EXPECT_FALSE(Has(AdviceFor(v), "split-on-all-ranks"));
}

// Another rank's stack may not have come in time.
TEST(AdviceDeparturesTest, Rank0AloneInACallIsEnough) {
  Verdict v = Standing(Mismatch(Cause::kArgumentMismatch, AllReduce(1), AllReduce(), 10, {"count"}),
                       "distributed_c10d.all_reduce train.main");
  v.culprits[0].rank = 0;
  EXPECT_EQ(AdviceFor(v).front().id, "extra-call");
}

// A tensor that is made whole runs an autograd function, and no module.
TEST(AdviceDeparturesTest, FullTensorIsNotAForwardPass) {
  const Verdict v = Standing(Meeting(AllGather(), AllReduce()),
                             "_redistribute.Redistribute.forward function.Function.apply "
                             "_api.DTensor.full_tensor train.log_weights",
                             "_tensor.Tensor.backward train.main");
  EXPECT_EQ(AdviceFor(v).front().id, "extra-call");
}

// It has passed the wrong group to its usual call, and is in no other step than the others.
TEST(AdviceDeparturesTest, AUsualCallOnAnotherCommunicatorIsNotBehindTheLoop) {
  Verdict v =
      Standing(Mismatch(Cause::kArgumentMismatch, AllReduce(1), AllReduce(256), 26, {"count"}),
               "distributed_c10d.all_reduce train.main",
               "distributed_c10d.all_reduce train.train_step train.main");
  EXPECT_EQ(AdviceFor(v).front().id, "uneven-inputs");
  v.is_usual_elsewhere = true;
  EXPECT_EQ(AdviceFor(v).front().id, "communicators-in-one-order");
  EXPECT_FALSE(Has(AdviceFor(v), "uneven-inputs"));
  v.divergence = DivergenceKind::kSkipped;
  EXPECT_FALSE(Has(AdviceFor(v), "skipped-call"));
}

// It is past the line of new_group() at which the others wait, but in another group.
TEST(AdviceDeparturesTest, AGroupThatWasNotMadeByAllIsNotAStepLeftOut) {
  Verdict v =
      Standing(Make(Cause::kInitIncomplete, {Op::kProcessGroupGloo}, 0),
               "distributed_c10d.all_reduce train.main", "distributed_c10d.new_group train.main");
  v.communicator_kind = CommKind::kGloo;
  v.departure.kind = StackDeparture::Kind::kSkipped;
  EXPECT_EQ(AdviceFor(v).front().id, "skipped-call");
  v.divergence = DivergenceKind::kSkipped;
  EXPECT_EQ(AdviceFor(v).front().id, "split-on-all-ranks");
}

// A loop over metrics, of which one rank has one more, is not a loop of training.
TEST(AdviceDeparturesTest, AdvisesOnAMetricSyncedAloneInAnAbandonedLoop) {
  Verdict v =
      Standing(Mismatch(Cause::kArgumentMismatch, AllReduce(1), AllReduce(561), 8, {"count"}),
               "distributed_c10d.barrier metric.Metric.sync train.main",
               "_tensor.Tensor.backward train.train train.main");
  v.departure.kind = StackDeparture::Kind::kStays;
  EXPECT_EQ(AdviceFor(v).front().id, "metric-on-some-ranks");
  v.odd_call_is_usual = true;
  EXPECT_EQ(AdviceFor(v).front().id, "uneven-inputs") << "each step syncs it";
}

// A thread may have failed that no thread waits for.
TEST(AdviceDeparturesTest, AFailedThreadExplainsOnlyAWaitForAnother) {
  for (const auto& [functions, id] : std::vector<std::tuple<const char*, const char*>>{
           {"threading.Condition.wait queue.Queue.get train.main", "thread-failed"},
           {"clock_nanosleep time.sleep train.main", "thread-failed"},
           {"gloo::barrier distributed_c10d.barrier train.main", "mixed-backends"},
           {"pdb.Pdb.cmdloop train.main", "debugger-prompt"},
           {"fcntl.flock lock.FileLock.acquire train.main", "file-lock"}}) {
    Verdict v = MissingAt(functions);
    v.culprits[0].thread_error = "KeyError: 3 at data.py:40";
    EXPECT_EQ(AdviceFor(v).front().id, id) << functions;
  }
}

// Where one rank loads first and the others wait for it in a barrier, that rank comes to its own
// barrier later: what it does there is the reason, and no call that it has left out.
TEST(AdviceDeparturesTest, PrefersAnAbsentRanksWorkToTheLineItPassed) {
  for (const auto& [functions, late, id] : std::vector<std::tuple<const char*, bool, const char*>>{
           {"ssl.SSL_read hub.hf_hub_download train.load", false, "downloads-alone"},
           {"fcntl.flock lock.FileLock.acquire train.load", false, "file-lock"},
           {"threading.Condition.wait queue.Queue.get train.load", false, "waits-for-a-thread"},
           {"clock_nanosleep time.sleep train.load", false, "sleeps-alone"},
           {"tokenizer.encode train.load", true, "late-rank"},
           {"tokenizer.encode train.load", false, "skipped-call"},
           {"gloo::barrier distributed_c10d.barrier train.load", false, "skipped-call"}}) {
    Verdict v = MissingAt(functions);
    v.late = late;
    v.culprits[0].rank = 0;
    v.departure.kind = StackDeparture::Kind::kSkipped;
    const std::vector<Advice> advice = AdviceFor(v);
    EXPECT_EQ(advice.front().id, id) << functions;
    EXPECT_TRUE(Has(advice, "skipped-call")) << functions;
  }
}

TEST(AdviceDeparturesTest, TellsWhatOneSideDoesAndTheOtherDoesNot) {
  Verdict v = Standing(Meeting(AllGather(), AllReduce()), "_api.DTensor.full_tensor train.norms",
                       "_tensor.Tensor.backward train.step");
  v.places[0].at = "/x/train.py:35 in norms.<locals>.<dictcomp>";
  v.places[0].inside = "DTensor.full_tensor";
  v.waiting_place.at = "/x/train.py:27 in step";
  EXPECT_EQ(AdviceFor(v).front().text.rfind(
                "Guess from the stack: rank 3 alone calls DTensor.full_tensor in `norms`, a rank "
                "that waits is in `step`. The rank makes a call",
                0),
            0u)
      << AdviceFor(v).front().text;
  v.waiting_place.at = v.places[0].at;
  EXPECT_EQ(AdviceFor(v).front().text.find("alone"), std::string::npos);
}

}  // namespace
}  // namespace rollcall
