// SPDX-License-Identifier: Apache-2.0
// The table of advice: for each entry a verdict that fits and a similar verdict that must
// not fit; and the page of the table.
#include "daemon/diagnosis/advice.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "advice_verdicts.h"
#include "base/read_file.h"

namespace rollcall {
namespace {

Verdict OnStack(const char* words, Cause cause = Cause::kMissingRank) {
  Verdict v = Make(cause, {Op::kGather});
  v.stack_words = words;
  return v;
}

Verdict Arguments(const char* field, CallArgs call = {Op::kGather}) {
  return Mismatch(Cause::kArgumentMismatch, call, call, 100, {field});
}

Verdict Ended(Cause cause, int code, int signal) {
  Verdict v = Make(cause);
  v.culprits[0].exit_code = code;
  v.culprits[0].exit_signal = signal;
  return v;
}

Verdict Parted(DivergenceKind kind) {
  Verdict v =
      Mismatch(Cause::kOperationMismatch, {Op::kGather}, {Op::kScatter}, 100, {"operation"});
  v.divergence = kind;
  return v;
}

Verdict Cycle(std::vector<std::pair<uint64_t, Op>> edges) {
  Verdict v = Make(Cause::kDeadlock);
  for (const auto& [communicator, op] : edges) {
    v.chain.emplace_back();
    v.chain.back().communicator = communicator;
    v.chain.back().call.op = op;
  }
  return v;
}

Verdict With(Verdict v, const std::function<void(Verdict*)>& change) {
  change(&v);
  return v;
}

// One rank waits for all others.
Verdict OneWaits(CallArgs call) {
  Verdict v = Make(Cause::kMissingRank, call);
  v.waiting_ranks = {0};
  v.culprits.resize(63, v.culprits[0]);
  return v;
}

// Where both sides stand in one function of the program.
Verdict Lines(Verdict v, int culprit, std::vector<CodeBlock> blocks, int waiter,
              std::vector<CodeBlock> waiters_blocks) {
  v.places.resize(1);
  v.places[0].program = {{"main", "/x/train.py", culprit, true, std::move(blocks)}};
  v.waiting_place.program = {{"main", "/x/train.py", waiter, true, std::move(waiters_blocks)}};
  return v;
}

CodeBlock Handler(int first, int last) {
  CodeBlock block;
  block.kind = CodeBlock::Kind::kHandler;
  block.first = first;
  block.last = last;
  return block;
}

CodeBlock LoopOf(int first, int last) {
  CodeBlock block;
  block.first = first;
  block.last = last;
  return block;
}

struct AdviceCase {
  const char* id;
  Verdict fits;
  Verdict other;
};

Verdict StillIn(StandKind kind) {
  return With(Make(Cause::kStandstill), [kind](Verdict* v) { v->standstill.in = kind; });
}

// Rank 3 holds the call up, by the states of its transfers.
Verdict HeldUp(NetworkFault fault) {
  return With(Make(Cause::kStalledInFlight), [fault](Verdict* v) {
    v->network.fault = fault;
    v->network.culprit = 3;
    v->network.peer = 4;
  });
}

// A rank receives a message and stands, and the culprit is in this function.
Verdict InMessages(const char* function) {
  Verdict v = StillIn(StandKind::kGloo);
  v.places = {StackPlace()};
  v.places[0].functions = function;
  v.waiting_place.functions = "distributed_c10d.recv";
  return v;
}

const std::vector<AdviceCase>& KnownCases() {
  static const auto* const kCases = new std::vector<AdviceCase>{
      {"stopped-process",
       With(Make(Cause::kStalledInFlight), [](Verdict* v) { v->culprits[0].state = 'T'; }),
       Make(Cause::kStalledInFlight)},
      {"gpu-does-not-produce", HeldUp(NetworkFault::kOwnGpu), HeldUp(NetworkFault::kPeerGpu)},
      {"gpu-does-not-take", HeldUp(NetworkFault::kPeerGpu), HeldUp(NetworkFault::kOwnGpu)},
      {"link-does-not-carry", HeldUp(NetworkFault::kLink), HeldUp(NetworkFault::kProxy)},
      {"proxy-thread-stands", HeldUp(NetworkFault::kProxy),
       With(HeldUp(NetworkFault::kProxy), [](Verdict* v) { v->culprits.clear(); })},
      {"idle-server", With(Make(Cause::kMissingRank), [](Verdict* v) { v->is_idle = true; }),
       Make(Cause::kMissingRank)},
      {"idle-workers",
       With(Make(Cause::kInitIncomplete),
            [](Verdict* v) {
              v->is_idle = true;
              v->start_fault = StartFault::kAllWait;
            }),
       With(Make(Cause::kInitIncomplete),
            [](Verdict* v) { v->start_fault = StartFault::kAllWait; })},
      {"nobody-makes-it",
       With(Make(Cause::kMissingRank),
            [](Verdict* v) {
              v->communicator_kind = CommKind::kStore;
              v->waiting_ranks.push_back(v->culprits[0].rank);
            }),
       With(Make(Cause::kMissingRank),
            [](Verdict* v) { v->communicator_kind = CommKind::kStore; })},
      {"ranks-numbered-twice",
       With(Make(Cause::kInitIncomplete), [](Verdict* v) { v->is_one_rank = true; }),
       Make(Cause::kInitIncomplete)},
      {"sizes-of-the-world-differ",
       With(Make(Cause::kInitIncomplete), [](Verdict* v) { v->mismatched_fields = {"size"}; }),
       Make(Cause::kInitIncomplete)},
      {"captured-on-some-ranks",
       With(Make(Cause::kMissingRank), [](Verdict* v) { v->captured = true; }),
       Make(Cause::kMissingRank)},
      {"debugger-prompt", OnStack("main cmdloop PyOS_Readline"), OnStack("main read")},
      {"storage-wait",
       With(Make(Cause::kMissingRank),
            [](Verdict* v) { v->culprits[0].wait_channel = "rpc_wait_bit_killable"; }),
       With(Make(Cause::kMissingRank),
            [](Verdict* v) { v->culprits[0].wait_channel = "futex_wait_queue"; })},
      {"loads-gpu-code", OnStack("cuModuleLoadDataEx"), OnStack("dlopen")},
      {"gpu-memory-call", OnStack("at::empty cudaMalloc"), OnStack("malloc")},
      {"compiles-alone", OnStack("nvrtcCompileProgram"),
       OnStack("dynamo_eval_frame torch::jit::invokeOperatorFromPython")},
      {"file-lock", OnStack("flock"), OnStack("pthread_mutex_lock")},
      {"downloads-alone", OnStack("SSL_read"), OnStack("recv")},
      {"saves-alone", OnStack("caffe2::serialize::PyTorchStreamWriter::writeRecord"),
       OnStack("caffe2::serialize::PyTorchStreamReader::getRecord")},
      {"data-loader", OnStack("_next_data _try_get_data"), OnStack("forward")},
      {"mixed-backends", OnStack("gloo::barrier(gloo::BarrierOptions&)"),
       OnStack("gloo::transport::tcp::Loop::run() c10d::detail::TCPStoreMasterDaemon::run()")},
      {"waits-for-its-gpu", OnStack("cudaStreamSynchronize"),
       OnStack("cudaStreamSynchronize", Cause::kBlockedBeforeStart)},
      {"gil-held", OnStack("take_gil"),
       With(OnStack("take_gil"), [](Verdict* v) { v->late = true; })},
      {"killed", Ended(Cause::kRankDied, -1, 9), Ended(Cause::kRankDied, -1, 15)},
      {"crashed", Ended(Cause::kRankDied, 134, 0), Ended(Cause::kRankDied, -1, 9)},
      {"raised-an-exception", Ended(Cause::kRankDied, 1, 0), Ended(Cause::kRankExited, 0, 0)},
      {"thread-failed",
       With(Make(Cause::kMissingRank),
            [](Verdict* v) { v->culprits[0].thread_error = "KeyError: 3 at data.py:40"; }),
       Make(Cause::kMissingRank)},
      {"collective-on-one-rank", OneWaits({Op::kGather}),
       With(OneWaits({Op::kGather}), [](Verdict* v) { v->waiting_ranks = {0, 1}; })},
      {"signal-handler", MissingAt("clock_nanosleep __restore_rt train.main"),
       MissingAt("clock_nanosleep train.main")},
      {"garbage-collection", MissingAt("gc_collect_main train.main"), MissingAt("train.collect")},
      {"imports-alone", MissingAt("<frozen_importlib._bootstrap>._find_and_load train.main"),
       MissingAt("train.load_plugin")},
      {"logs-alone", MissingAt("write __init__.StreamHandler.emit train.main"),
       MissingAt("write train.write_tokens")},
      {"waits-for-a-child", MissingAt("wait4 subprocess.Popen.wait subprocess.run train.main"),
       MissingAt("read train.main")},
      {"metric-on-some-ranks", Standing(Meeting({Op::kGather}, AllReduce()), "metric.Metric.sync"),
       Standing(Meeting({Op::kGather}, AllReduce()), "train.main")},
      {"clips-alone", Standing(Meeting({Op::kGather}, AllReduce()), "clip_grad.clip_grad_norm_"),
       Standing(Meeting({Op::kGather}, AllReduce()), "train.main")},
      {"rank0-only-checkpoint",
       Standing(Meeting(AllGather(), AllReduce()), "state_dict.get_model_state_dict train.save"),
       Standing(Meeting(AllGather(), AllReduce()), "checkpoint.CheckpointFunction.forward")},
      {"buffer-broadcast",
       Standing(Meeting(Broadcast(), AllReduce()),
                "distributed.DistributedDataParallel._sync_buffers"),
       Standing(Meeting(Broadcast(), AllReduce()), "train.weight_norms")},
      {"handles-an-exception", Lines(Make(Cause::kRankExited), 9, {Handler(8, 9)}, 5, {}),
       Lines(Make(Cause::kRankExited), 9, {Handler(4, 9)}, 5, {Handler(4, 9)})},
      {"uneven-inputs", MissingAt("distributed_c10d.barrier train.main"),
       MissingAt("queue.Queue.get train.upload")},
      {"validates-alone", MissingAt("train.validate train.main"), MissingAt("train.main")},
      {"engine-worker-stopped",
       Standing(Make(Cause::kMissingRank), "queue.Queue.get worker.Worker.shutdown",
                "gpu_worker.Worker.execute_model multiproc_executor.WorkerProc.worker_busy_loop"),
       Standing(Make(Cause::kMissingRank), "sampler.Sampler.sample gpu_worker.Worker.execute_model",
                "gpu_worker.Worker.execute_model multiproc_executor.WorkerProc.worker_busy_loop")},
      {"extra-call",
       Standing(Meeting(AllGather(), AllReduce()), "_api.DTensor.full_tensor train.weight_norms",
                "_tensor.Tensor.backward train.main"),
       Standing(Meeting(AllReduce(1), AllReduce()), "distributed_c10d.barrier train.main",
                "_tensor.Tensor.backward train.main")},
      {"skipped-call",
       Standing(Meeting(AllReduce(), AllGather()), "_tensor.Tensor.backward train.main",
                "distributed_c10d.all_gather_object train.report"),
       Standing(Meeting(AllReduce(), AllReduce(1)), "_tensor.Tensor.backward train.main",
                "distributed_c10d.barrier train.main")},
      {"waits-for-a-thread", MissingAt("queue.Queue.get train.upload train.main"),
       MissingAt("pthread_cond_wait gloo::barrier distributed_c10d.barrier train.main")},
      {"sleeps-alone", MissingAt("clock_nanosleep train.poll"), MissingAt("train.poll")},
      {"buffer-broadcast",
       Mismatch(Cause::kOperationMismatch, AllReduce(), Broadcast(), 100, {"operation"}),
       Mismatch(Cause::kOperationMismatch, AllGather(), Broadcast(), 100, {"operation"})},
      {"rank0-only-checkpoint", Meeting(AllGather(), AllReduce(1)),
       Meeting(AllGather(), AllReduce())},
      {"rank0-only-setup", Make(Cause::kMissingRank, AllGather(), 1),
       Make(Cause::kMissingRank, AllGather(), 3)},
      {"alltoall-splits", Arguments("count", {Op::kAlltoAll}), Arguments("dtype", {Op::kAlltoAll})},
      {"calls-swapped", Parted(DivergenceKind::kSwapped), Parted(DivergenceKind::kReplaced)},
      {"extra-call", Parted(DivergenceKind::kExtra), Parted(DivergenceKind::kSkipped)},
      {"skipped-call", Parted(DivergenceKind::kSkipped), Parted(DivergenceKind::kExtra)},
      {"type-differs", Arguments("dtype"), Arguments("count")},
      {"root-differs", Arguments("root"), Arguments("count")},
      {"reduction-differs", Arguments("reduction"), Arguments("dtype")},
      {"uneven-inputs", Make(Cause::kRankExited), Make(Cause::kRankExited, {Op::kGather})},
      {"gradients-differ", Arguments("count", AllReduce()), Arguments("count", AllGather())},
      {"launch-count",
       With(Make(Cause::kInitIncomplete, {Op::kCommInitRank}, 0),
            [](Verdict* v) { v->culprits[0].pid = 0; }),
       Make(Cause::kInitIncomplete, {Op::kCommInitRank}, 0)},
      {"split-on-all-ranks", Make(Cause::kInitIncomplete, {Op::kCommSplit}, 0),
       Make(Cause::kInitIncomplete, {Op::kCommInitRank}, 0)},
      {"init-order", Make(Cause::kInitIncomplete, {Op::kCommInitRank}, 0),
       Make(Cause::kStalledInFlight, {Op::kCommInitRank}, 0)},
      {"bootstrap-network", Make(Cause::kStalledInFlight, {Op::kCommInitRank}, 0),
       Make(Cause::kStalledInFlight, AllReduce(), 0)},
      {"mpi-goes-on-inside-mpi",
       With(Make(Cause::kStalledInFlight, {Op::kMPI_Ibarrier}, 500),
            [](Verdict* v) { v->culprits.resize(1); }),
       With(Make(Cause::kStalledInFlight, {Op::kMPI_Barrier}, 500),
            [](Verdict* v) { v->waiting_ranks = {3}; })},
      {"first-call-transport", Make(Cause::kStalledInFlight, AllReduce(), 0),
       Make(Cause::kStalledInFlight, AllReduce(), 500)},
      {"worked-for-long", Make(Cause::kStalledInFlight, AllReduce(), 5000),
       Make(Cause::kStalledInFlight, AllReduce(), 500)},
      {"communicators-in-one-order", Cycle({{1, Op::kAllReduce}, {2, Op::kAllReduce}}),
       Cycle({{1, Op::kSend}, {1, Op::kSend}})},
      {"all-send-first", Cycle({{1, Op::kSend}, {1, Op::kRecv}}),
       Cycle({{1, Op::kSend}, {2, Op::kAllReduce}})},
      {"pipeline-out-of-step", InMessages("distributed_c10d.recv"),
       InMessages("distributed_c10d.barrier")},
      {"pipeline-out-of-step", Make(Cause::kUnmatchedP2p, {Op::kSend}),
       With(Make(Cause::kUnmatchedP2p, {Op::kSend}),
            [](Verdict* v) { v->mismatched_fields = {"count"}; })},
      {"first-call-by-all-members",
       With(Make(Cause::kInitIncomplete), [](Verdict* v) { v->all_ranks_live = true; }),
       Make(Cause::kInitIncomplete)},
      {"loop-without-end",
       With(Lines(Make(Cause::kMissingRank), 9, {LoopOf(8, 9)}, 5, {}),
            [](Verdict* v) { v->late = true; }),
       With(Lines(Make(Cause::kMissingRank), 9, {LoopOf(4, 9)}, 5, {LoopOf(4, 9)}),
            [](Verdict* v) { v->late = true; })},
      {"tags-differ",
       With(Make(Cause::kUnmatchedP2p, {Op::kRecv}),
            [](Verdict* v) { v->mismatched_fields = {"tag"}; }),
       Make(Cause::kUnmatchedP2p, {Op::kRecv})},
      {"abort-on-all-ranks", Make(Cause::kTeardownHang, {Op::kCommAbort}),
       Make(Cause::kTeardownHang, {Op::kCommDestroy})},
      {"queue-is-full",
       With(StillIn(StandKind::kQueue), [](Verdict* v) { v->standstill.writes = true; }),
       StillIn(StandKind::kQueue)},
      {"lock-order",
       With(StillIn(StandKind::kLock), [](Verdict* v) { v->standstill.two_locks = true; }),
       StillIn(StandKind::kLock)},
      {"held-lock", StillIn(StandKind::kProcessLock), StillIn(StandKind::kQueue)},
      {"lost-wake-up", StillIn(StandKind::kSignal), StillIn(StandKind::kSocket)},
      {"lacking-party", StillIn(StandKind::kBarrier), StillIn(StandKind::kSocket)},
      {"count-the-processes", StillIn(StandKind::kJaxStart), StillIn(StandKind::kJaxBarrier)},
      {"lost-message", StillIn(StandKind::kRing), StillIn(StandKind::kSocket)},
      {"ask-the-other-end", StillIn(StandKind::kSocket), StillIn(StandKind::kRing)},
      {"collective-outside", StillIn(StandKind::kMpi), StillIn(StandKind::kSocket)},
      {"late-rank", With(Make(Cause::kMissingRank), [](Verdict* v) { v->late = true; }),
       Make(Cause::kMissingRank)},
  };
  return *kCases;
}

std::vector<AdviceEntry> KnownMistakes() {
  std::vector<AdviceEntry> all;
  for (const auto* table : {&FactAdvice(), &StackAdvice(), &StandstillAdvice(), &CallAdvice()}) {
    all.insert(all.end(), table->begin(), table->end());
  }
  return all;
}

TEST(AdviceTest, EveryKnownMistakeHasItsCase) {
  std::multiset<std::string> entries, cases;
  for (const AdviceEntry& entry : KnownMistakes()) entries.insert(entry.id);
  for (const std::string& id : entries) EXPECT_LE(entries.count(id), 2u) << id;
  for (const AdviceCase& c : KnownCases()) cases.insert(c.id);
  EXPECT_EQ(entries, cases);
  EXPECT_GE(entries.size(), 20u);
}

TEST(AdviceTest, EachEntryFitsItsVerdictAndNotASimilarOne) {
  for (const AdviceCase& c : KnownCases()) {
    EXPECT_TRUE(Has(AdviceFor(c.fits), c.id)) << c.id;
    EXPECT_FALSE(Has(AdviceFor(c.other), c.id)) << c.id;
  }
}

TEST(AdviceTest, ACycleOverAKeyLacksWhoSetsIt) {
  Verdict v = Cycle({{1, Op::kstore_wait}, {2, Op::kAllReduce}});
  EXPECT_EQ(AdviceFor(v).front().id, "communicators-in-one-order");
  v.chain[0].communicator_kind = CommKind::kStore;
  EXPECT_EQ(AdviceFor(v).front().id, "nobody-makes-it");
  EXPECT_FALSE(Has(AdviceFor(v), "communicators-in-one-order"));
}

TEST(AdviceTest, ARankThatSleepsInItsOwnWaitWaitsForNoThread) {
  Verdict v = OnStack("");
  v.places = {StackPlace()};
  v.places[0].functions = " time.sleep StoreBarrier.wait ";
  v.places[0].inside = "time.sleep";
  EXPECT_FALSE(Has(AdviceFor(v), "waits-for-a-thread"));
  v.places[0].inside = "threading.Barrier.wait";
  EXPECT_TRUE(Has(AdviceFor(v), "waits-for-a-thread"));
}

TEST(AdviceTest, ALockOfSeveralProcessesMayBeHeldByADeadOne) {
  EXPECT_EQ(AdviceFor(OnStack("SemLock.__enter__ read")).front().id, "held-lock");
  EXPECT_FALSE(Has(AdviceFor(OnStack("SemLock.__enter__ Queue.get")), "held-lock"));
}

TEST(AdviceTest, SwappedFirstCallsAreNoSetUp) {
  Verdict v = Mismatch(Cause::kArgumentMismatch, AllReduce(), AllReduce(), 0, {"count"});
  EXPECT_EQ(AdviceFor(v).front().id, "rank0-only-setup");
  v.divergence = DivergenceKind::kSwapped;
  EXPECT_EQ(AdviceFor(v).front().id, "calls-swapped");
}

TEST(AdviceTest, InputFromAPipeIsAPromptToo) {
  EXPECT_TRUE(Has(AdviceFor(OnStack("main PyFile_GetLine _Py_read")), "debugger-prompt"));
}

// Each row of the table of network faults names its advice.
TEST(AdviceTest, EveryNetworkFaultHasTheAdviceOfItsRow) {
#define NETWORK_FAULT(name, word, meaning, sentence, evidence, line, short_line, advice, ...) \
  EXPECT_TRUE(Has(AdviceFor(HeldUp(NetworkFault::name)), advice)) << word;
#include "proto/network_faults.def"
}

// A person always gets advice, and never a whole page.
TEST(AdviceTest, EveryCauseHasOneGeneralEntryAndItComesLast) {
  std::set<std::string> ids;
#define X(name, text)                                                \
  {                                                                  \
    const std::vector<Advice> advice = AdviceFor(Make(Cause::name)); \
    ASSERT_FALSE(advice.empty()) << text;                            \
    EXPECT_LE(advice.size(), 4u) << text;                            \
    EXPECT_TRUE(ids.insert(advice.back().id).second) << text;        \
  }
  ROLLCALL_CAUSES(X)
#undef X
  EXPECT_EQ(ids.size(), GeneralAdvice().size());
}

// The advice that must come first for the classic hangs (docs/tutorial.md).
TEST(AdviceTest, TheFiveClassicHangsGetTheirAdviceFirst) {
  const std::vector<std::pair<const char*, Verdict>> cases = {
      {"uneven-inputs", Make(Cause::kRankExited)},
      {"uneven-inputs", Make(Cause::kMissingRank)},
      {"uneven-inputs", Arguments("count", AllReduce(7))},
      {"init-order", Make(Cause::kInitIncomplete, {Op::kCommInitRank}, 0)},
      {"rank0-only-setup", Make(Cause::kMissingRank, AllGather(), 1)},
      {"rank0-only-setup",
       Mismatch(Cause::kArgumentMismatch, AllGather(7), AllGather(), 0, {"count"})},
      {"buffer-broadcast",
       Mismatch(Cause::kOperationMismatch, Broadcast(), AllReduce(), 100, {"operation"})},
      {"buffer-broadcast",
       Mismatch(Cause::kOperationMismatch, AllReduce(), Broadcast(), 100, {"operation"})},
      {"rank0-only-checkpoint", Meeting(AllGather(), AllReduce(1))},
  };
  for (const auto& [id, verdict] : cases) EXPECT_EQ(AdviceFor(verdict).front().id, id);
}

// Its handler saves, while the others train on: the program itself was interrupted, and no call.
TEST(AdviceTest, ASignalMayComeBetweenCalls) {
  const std::string handler =
      "distributed_c10d.barrier job.save_checkpoint job.on_usr1 PyErr_CheckSignals job.train_step";
  const Verdict alone = Standing(Meeting(AllReduce(1), AllReduce(32)), handler,
                                 "distributed_c10d.all_reduce job.train_step");
  EXPECT_EQ(AdviceFor(alone).front().id, "signal-handler");
  const Verdict both = Standing(Meeting(AllReduce(1), AllReduce(32)), handler, handler);
  EXPECT_FALSE(Has(AdviceFor(both), "signal-handler"));
}

// The program counts its steps: both sides are in the same one.
TEST(AdviceTest, RanksInOneStepHaveHadEquallyMany) {
  const auto in_steps = [](int64_t culprit, int64_t others) {
    return AdviceFor(With(Arguments("count", AllReduce(7)),
                          [=](Verdict* v) {
                            v->culprits[0].step = culprit;
                            v->step = others;
                          }))
        .front()
        .id;
  };
  EXPECT_EQ(in_steps(12, 12), "gradients-differ");
  EXPECT_EQ(in_steps(11, 12), "uneven-inputs");
  EXPECT_EQ(in_steps(-1, -1), "uneven-inputs");
}

TEST(AdviceTest, AStackContradictsAGuessByTheCalls) {
  EXPECT_FALSE(Has(AdviceFor(MissingAt("queue.Queue.get train.upload")), "uneven-inputs"));
  const Verdict gathers = Standing(Meeting(AllGather(), AllReduce(1)), "clip_grad.clip_grad_norm_");
  EXPECT_FALSE(Has(AdviceFor(gathers), "rank0-only-checkpoint"));
  EXPECT_EQ(AdviceFor(gathers).front().id, "clips-alone");
}

// A rank that creates an NCCL communicator waits in torch's store, inside Rollcall's wrapper.
TEST(AdviceTest, AnNcclCreationIsNotAnotherBackend) {
  EXPECT_TRUE(Has(AdviceFor(MissingAt("TCPStore::wait train.main")), "mixed-backends"));
  for (const char* functions : {"TCPStore::wait <rollcall>.call train.main",
                                "TCPStore::wait ProcessGroupNCCL::initNCCLComm train.main"}) {
    EXPECT_FALSE(Has(AdviceFor(MissingAt(functions)), "mixed-backends")) << functions;
  }
}

Verdict Departed(StackDeparture::Kind kind, DivergenceKind divergence) {
  Verdict v = Standing(Meeting(AllGather(), AllReduce()), "train.main", "train.main");
  v.departure.kind = kind;
  v.divergence = divergence;
  return v;
}

TEST(AdviceTest, WhatTheStacksShowComesFirstAndAlone) {
  using Kind = StackDeparture::Kind;
  for (const auto& [kind, id] :
       std::vector<std::pair<Kind, const char*>>{{Kind::kSkipped, "skipped-call"},
                                                 {Kind::kExtra, "extra-call"},
                                                 {Kind::kLeftLoop, "uneven-inputs"},
                                                 {Kind::kStays, "uneven-inputs"}}) {
    const std::vector<Advice> advice = AdviceFor(Departed(kind, DivergenceKind::kReplaced));
    ASSERT_EQ(advice.size(), 2u) << id;
    EXPECT_EQ(advice[0].id, id);
    EXPECT_EQ(advice[1].id, "same-calls-everywhere") << id;
  }
}

TEST(AdviceTest, ContradictsNoSentence) {
  using Kind = StackDeparture::Kind;
  const Verdict extra = Departed(Kind::kSkipped, DivergenceKind::kExtra);
  EXPECT_FALSE(Has(AdviceFor(extra), "skipped-call"));
  EXPECT_EQ(AdviceFor(extra).front().id, "extra-call");
  const Verdict skipped = Departed(Kind::kExtra, DivergenceKind::kSkipped);
  EXPECT_FALSE(Has(AdviceFor(skipped), "extra-call"));
  EXPECT_EQ(AdviceFor(skipped).front().id, "skipped-call");
}

TEST(AdviceTest, ARankInAHandlerBehindTheLoopHasAnException) {
  Verdict v = Lines(Departed(StackDeparture::Kind::kLeftLoop, DivergenceKind::kReplaced), 9,
                    {Handler(8, 9)}, 5, {});
  EXPECT_EQ(AdviceFor(v).front().id, "handles-an-exception");
  v.departure.kind = StackDeparture::Kind::kExtra;
  EXPECT_EQ(AdviceFor(v).front().id, "extra-call") << "it reports its error by a call";
}

TEST(AdviceTest, AnArgumentDiffersBetweenTwoCallsFromOneLineOnly) {
  Verdict v = Arguments("dtype", AllReduce());
  EXPECT_TRUE(Has(AdviceFor(v), "type-differs"));
  v.site = "/x/train.py:9 in main";
  v.culprits[0].site = "/x/train.py:30 in main";
  EXPECT_FALSE(Has(AdviceFor(v), "type-differs"));
  v.culprits[0].site = v.site;
  EXPECT_TRUE(Has(AdviceFor(v), "type-differs"));
  v = Mismatch(Cause::kArgumentMismatch, AllReduce(1), AllReduce(), 100, {"count", "dtype"});
  EXPECT_FALSE(Has(AdviceFor(v), "type-differs")) << "two calls, as far as one knows";
}

TEST(AdviceTest, TheEndOfAWithBlockIsAHandlerOnlyOfAKnownException) {
  Verdict v = Lines(Make(Cause::kMissingRank), 9, {}, 5, {});
  v.places[0].functions = " threading.Thread.join train.Uploads.__exit__ train.main ";
  v.places[0].program.push_back({"Uploads.__exit__", "/x/train.py", 20, true, {}});
  EXPECT_FALSE(Has(AdviceFor(v), "handles-an-exception"));
  v.handled.exception.type = "KeyError";
  EXPECT_EQ(AdviceFor(v).front().id, "handles-an-exception");
}

TEST(AdviceTest, ARankInAMessageMissesItsPeerUnlessItHasSkippedTheCall) {
  Verdict v = Make(Cause::kMissingRank);
  v.places.resize(1);
  v.places[0].functions = " distributed_c10d.recv ring.rotate ";
  v.departure.kind = StackDeparture::Kind::kStays;
  EXPECT_EQ(AdviceFor(v).front().id, "pipeline-out-of-step");
  v.departure.kind = StackDeparture::Kind::kSkipped;
  EXPECT_EQ(AdviceFor(v).front().id, "skipped-call");
}

TEST(AdviceTest, ARankThatLeftEarlyHasNotSetUpAnythingElse) {
  Verdict v = Make(Cause::kRankExited, {Op::kAllGather});
  v.position = 1;
  EXPECT_EQ(AdviceFor(v).front().id, "why-it-left");
}

TEST(AdviceTest, AnotherTypeInTheFirstCallsIsNoOtherSetUp) {
  Verdict v = Mismatch(Cause::kArgumentMismatch, AllReduce(), AllReduce(), 1, {"dtype"});
  EXPECT_EQ(AdviceFor(v).front().id, "type-differs");
  v.mismatched_fields = {"count"};
  EXPECT_EQ(AdviceFor(v).front().id, "rank0-only-setup");
}

TEST(AdviceTest, AWorkerOfAPoolIsNotAThread) {
  const std::vector<Advice> advice = AdviceFor(
      MissingAt("threading.Condition.wait pool.ApplyResult.wait pool.Pool.map train.main"));
  EXPECT_EQ(advice.front().id, "waits-for-a-child");
  EXPECT_FALSE(Has(advice, "waits-for-a-thread"));
}

TEST(AdviceTest, AQueueOfMultiprocessingIsFilledByAChild) {
  EXPECT_EQ(AdviceFor(MissingAt("read connection._ConnectionBase.recv_bytes queues.Queue.get "
                                "train.main"))
                .front()
                .id,
            "waits-for-a-child");
  EXPECT_EQ(
      AdviceFor(MissingAt("read connection._ConnectionBase.recv_bytes queues.Queue.get "
                          "dataloader._MultiProcessingDataLoaderIter._try_get_data train.main"))
          .front()
          .id,
      "data-loader");
}

TEST(AdviceTest, ARankThatAsksTheStoreLacksTheKeyUnlessTorchAsks) {
  EXPECT_EQ(AdviceFor(MissingAt("__poll c10d::TCPStore::get c10d::PrefixStore::get train.agree"))
                .front()
                .id,
            "nobody-makes-it");
  EXPECT_FALSE(Has(AdviceFor(MissingAt("__poll c10d::TCPStore::get ProcessGroupNCCL::getNCCLComm "
                                       "train.main")),
                   "nobody-makes-it"));
}

TEST(AdviceTest, ARankThatHasGoneOnFromTheFirstCallHasSkippedIt) {
  Verdict v = Departed(StackDeparture::Kind::kSkipped, DivergenceKind::kReplaced);
  v.position = 0;
  EXPECT_EQ(AdviceFor(v).front().id, "skipped-call");
  v.departure.kind = StackDeparture::Kind::kExtra;
  EXPECT_EQ(AdviceFor(v).front().id, "rank0-only-setup");
}

TEST(AdviceTest, AConsequenceHasNone) {
  Verdict v = Make(Cause::kMissingRank);
  v.is_consequence = true;
  EXPECT_TRUE(AdviceFor(v).empty());
}

TEST(AdviceTest, SaysThatItIsAGuess) {
  EXPECT_EQ(AdviceFor(MissingAt("queue.Queue.get")).front().text.rfind("Guess from the stack: ", 0),
            0u);
  EXPECT_EQ(AdviceFor(Make(Cause::kMissingRank)).front().text.rfind("Guess from the calls: ", 0),
            0u);
  EXPECT_EQ(AdviceFor(Ended(Cause::kRankDied, -1, 9)).front().text.find("Guess"),
            std::string::npos);
}

std::string Section(const AdviceEntry& entry) {
  return absl::StrCat("\n### ", entry.id, "\n\n*Seen:* ", entry.seen, ".\n\n", entry.why, "\n\n**",
                      entry.text, "**\n");
}

std::string Document() {
  std::string text =
      "# Advice\n\nLook up an advice that a verdict names, such as `[validates-alone]`: what Rollcall "
      "has seen, why that hangs a job, and in bold what to do. `ROLLCALL_WRITE_DOCS=1 diagnosis_test` "
      "generates this page from `daemon/diagnosis/advice_*.cc`.\n\n"
      "A verdict gives up to three known mistakes that fit, and the general entry for its cause last. "
      "After what is known of the process comes what the stacks of both sides show beside each other, "
      "and then the order of this page. A consequence gets no advice.\n";
  const auto add = [&](const char* title, const std::vector<AdviceEntry>& table) {
    absl::StrAppend(&text, "\n## ", title, "\n");
    for (const AdviceEntry& entry : table) text += Section(entry);
  };
  add("By what is known of the process", FactAdvice());
  add("Guess from the stack", StackAdvice());
  add("Guess from the stack, where no recorded call waits", StandstillAdvice());
  add("Guess from the calls", CallAdvice());
  add("In general", GeneralAdvice());
  return text;
}

TEST(AdviceTest, GoesOnInLowerCaseAfterTheHeadExceptWithNames) {
  EXPECT_EQ(AdviceFor(MissingAt("queue.Queue.get"))
                .front()
                .text.rfind("Guess from the stack: the rank ", 0),
            0u);
  EXPECT_EQ(AdviceFor(Make(Cause::kTeardownHang, {Op::kCommAbort}))
                .front()
                .text.rfind("Guess from the calls: CommAbort waits", 0),
            0u);
}

TEST(AdviceTest, TheDocumentationIsTheTable) {
  const std::string path = ROLLCALL_DOCS "/advice.md";
  if (std::getenv("ROLLCALL_WRITE_DOCS") != nullptr) std::ofstream(path) << Document();
  const std::string text = ReadFile(path).value_or("");
  EXPECT_EQ(text, Document()) << "run: ROLLCALL_WRITE_DOCS=1 diagnosis_test";
}

}  // namespace
}  // namespace rollcall
