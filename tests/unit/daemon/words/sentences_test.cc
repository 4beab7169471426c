// SPDX-License-Identifier: Apache-2.0
// The sentence of a verdict: one table of verdicts and their sentences. It has every cause, one
// culprit and several, and each part that a sentence may have or lack.
#include "daemon/words/sentences.h"

#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "daemon/model/interned_shapes.h"
#include "daemon/words/rank_ranges.h"
#include "daemon/words/terms.h"
#include "job_builder.h"

namespace rollcall {
namespace {

CallArgs Reduce() { return AllReduce(8); }
CallArgs Share() { return Broadcast(8); }
CallArgs Send(int32_t peer) { return {Op::kSend, 7, kNoReduction, peer, 8}; }
CallArgs Recv(int32_t peer) { return {Op::kRecv, 7, kNoReduction, peer, 16}; }

// A verdict on call #24 of communicator "dp" (4 ranks): rank 3 is the culprit. Each method changes
// one fact.
struct VerdictBuilder {
  Verdict v;

  explicit VerdictBuilder(Cause cause, CallArgs call = Reduce()) {
    v.cause = cause;
    v.call = call;
    v.communicator = kDp;
    v.communicator_name = "dp";
    v.communicator_size = 4;
    v.position = 24;
    v.waited_ns = 48 * kSecondNs;
    Culprits({3});
  }
  operator Verdict() const { return v; }

  VerdictBuilder& Culprits(const std::vector<int32_t>& ranks) {
    v.culprits.clear();
    for (const int32_t rank : ranks) {
      Culprit culprit;
      culprit.process = rank;
      culprit.rank = rank;
      culprit.host = "n1";
      culprit.pid = 70 + rank;
      v.culprits.push_back(culprit);
    }
    return *this;
  }
  // Rank 3 and rank 1 are the ends of a transfer that stands.
  VerdictBuilder& Transfers(NetworkFault fault) {
    v.network.fault = fault;
    v.network.culprit = 3;
    v.network.peer = 1;
    v.network.hops = {{3, 1, 5, NetworkWait::kSendGpu, 0}};
    return *this;
  }
  VerdictBuilder& EachOnItsHost() {
    for (Culprit& c : v.culprits) c.host = absl::StrCat("n", c.rank);
    return *this;
  }
  VerdictBuilder& NoHost() {
    for (Culprit& c : v.culprits) c.host.clear();
    return *this;
  }
  VerdictBuilder& NoProcess() {
    for (Culprit& c : v.culprits) c.process = -1;
    return NoHost();
  }
  VerdictBuilder& Ended(const std::string& how, uint64_t entered) {
    for (Culprit& c : v.culprits) {
      c.ending = how;
      c.entered = entered;
    }
    return *this;
  }
  VerdictBuilder& Failed(uint64_t entered) {
    for (Culprit& c : v.culprits) c.error = "ValueError: no";
    return Ended("ValueError: no", entered);
  }
  VerdictBuilder& Called(CallArgs call) {
    for (Culprit& c : v.culprits) c.call = call;
    return *this;
  }
  VerdictBuilder& Stands(StandShape shape, StandKind in, const std::string& others = "",
                         const std::string& on = "") {
    v.standstill.shape = shape;
    v.standstill.in = in;
    v.standstill.others_in = StandKind::kSocket;
    v.standstill.others = others;
    v.standstill.on = on;
    v.standstill.others_wait_for_them = shape != StandShape::kElsewhere;
    return *this;
  }
  VerdictBuilder& LacksThread(const std::string& function) {
    v.standstill.lacks_thread = function;
    return *this;
  }
  // The lines of the culprits, one each, and the function that they wait in.
  VerdictBuilder& At(const std::vector<std::string>& lines, const std::string& inside = "") {
    for (const std::string& line : lines) v.places.push_back({line, inside, true, ""});
    return *this;
  }
  VerdictBuilder& Result(int32_t code, CallArgs call) {
    for (Culprit& c : v.culprits) c.nccl_result = code;
    return Called(call);
  }
  VerdictBuilder& Waiting(const std::vector<int32_t>& ranks) {
    v.waiting_ranks = ranks;
    return *this;
  }
  VerdictBuilder& Tie() {
    Culprits({2, 3}).v.culprits[0].call = v.call;
    v.culprits[1].call = Share();
    return *this;
  }
  VerdictBuilder& Parted(DivergenceKind kind, std::vector<AlignedCall> histories) {
    v.divergence = kind;
    v.histories = std::move(histories);
    return Called(Share());
  }
  VerdictBuilder& Cycle(CallArgs call, int edges) {
    v.position = 5;
    v.chain.clear();
    std::vector<int32_t> ranks;
    for (int i = 0; i < edges; ++i) {
      ranks.push_back(i);
      const int next = (i + 1) % edges;
      v.chain.push_back(
          {{i}, {{next, next}}, kDp, i % 2 == 0 ? "a" : "b", CommKind::kNccl, 4, 5, call});
    }
    return Culprits(ranks);
  }
  template <typename Field, typename Value>
  VerdictBuilder& Set(Field Verdict::* field, Value value) {
    v.*field = value;
    return *this;
  }
};

struct Entry {
  const char* shows;
  Verdict verdict;
  const char* sentence;
};

std::vector<AlignedCall> Extra(int calls) {
  return std::vector<AlignedCall>(calls, AlignedCall{24, 24, {}, Share()});
}

std::vector<AlignedCall> Skipped(int calls) {
  return std::vector<AlignedCall>(calls, AlignedCall{24, 24, Reduce(), {}});
}

// clang-format off
std::vector<Entry> Table() {
  using C = Cause;
  using D = DivergenceKind;
  const CallArgs init = {Op::kCommInitRank}, split = {Op::kCommSplit}, none = {};
  const CallArgs destroy = {Op::kCommDestroy}, early = {Op::kMPI_Iallreduce, kNoDtype};
  return {
    {"one rank", VerdictBuilder(C::kMissingRank).Waiting({0, 1, 2}),
     R"(rank 3 (n1, pid 73) has not called AllReduce #24 on communicator "dp"; 3 ranks have waited 48 s)"},
    {"several ranks", VerdictBuilder(C::kMissingRank).Culprits({2, 3}).Waiting({0}),
     R"(ranks 2-3 (n1, pids 72, 73) have not called AllReduce #24 on communicator "dp"; 1 rank has waited 48 s)"},
    {"several hosts", VerdictBuilder(C::kMissingRank).Culprits({1, 3}).EachOnItsHost(),
     R"(ranks 1,3 (2 hosts) have not called AllReduce #24 on communicator "dp")"},
    {"no host", VerdictBuilder(C::kMissingRank).NoHost(),
     R"(rank 3 has not called AllReduce #24 on communicator "dp")"},
    {"no process", VerdictBuilder(C::kMissingRank).NoProcess(),
     R"(rank 3 of the communicator (unknown process) has not called AllReduce #24 on communicator "dp")"},
    {"no name", VerdictBuilder(C::kMissingRank).Set(&Verdict::communicator_name, ""),
     R"(rank 3 (n1, pid 73) has not called AllReduce #24 on communicator a91f0c22)"},
    {"another library", VerdictBuilder(C::kMissingRank).Set(&Verdict::communicator_kind, CommKind::kGloo),
     R"(rank 3 (n1, pid 73) has not called AllReduce #24 on gloo communicator "dp")"},
    {"no operation", VerdictBuilder(C::kMissingRank, none),
     R"(rank 3 (n1, pid 73) has not called call #24 on communicator "dp")"},
    {"step", VerdictBuilder(C::kMissingRank).Waiting({0, 1, 2}).Set(&Verdict::step, 812),
     R"(rank 3 (n1, pid 73) has not called AllReduce #24 on communicator "dp"; 3 ranks have waited 48 s in step 812)"},
    {"step and phase", VerdictBuilder(C::kMissingRank).Waiting({0, 1, 2}).Set(&Verdict::step, 8).Set(&Verdict::phase, "validation"),
     R"(rank 3 (n1, pid 73) has not called AllReduce #24 on communicator "dp"; 3 ranks have waited 48 s in step 8 (validation))"},
    {"graph", VerdictBuilder(C::kMissingRank).Set(&Verdict::graph, GraphCall{1, 6, 2, 5}),
     R"(rank 3 (n1, pid 73) has not called AllReduce #24 (CUDA graph 1, launch 6, call 2 of 5) on communicator "dp")"},
    {"late", VerdictBuilder(C::kMissingRank).Set(&Verdict::late, true),
     R"(rank 3 (n1, pid 73) is late for AllReduce #24 on communicator "dp" and runs other code)"},
    {"several late", VerdictBuilder(C::kMissingRank).Culprits({2, 3}).Set(&Verdict::late, true),
     R"(ranks 2-3 (n1, pids 72, 73) are late for AllReduce #24 on communicator "dp" and run other code)"},

    {"a line", VerdictBuilder(C::kMissingRank).At({"/x/train.py:31 in Saver.save"}).Waiting({0, 1, 2}),
     R"(rank 3 (n1, pid 73) is in `Saver.save` (train.py:31) and has not called AllReduce #24 on communicator "dp"; 3 ranks have waited 48 s)"},
    {"a line that waits", VerdictBuilder(C::kMissingRank).At({"/x/train.py:31 in main.<locals>.upload"}, "Queue.get"),
     R"(rank 3 (n1, pid 73) is in `upload` (train.py:31), waiting in Queue.get, and has not called AllReduce #24 on communicator "dp")"},
    {"several at a line", VerdictBuilder(C::kMissingRank).Culprits({2, 3}).At({"/x/a.py:3 in f", "/x/a.py:3 in f"}),
     R"(ranks 2-3 (n1, pids 72, 73) are in `f` (a.py:3) and have not called AllReduce #24 on communicator "dp")"},
    {"several lines", VerdictBuilder(C::kMissingRank).Culprits({1, 2, 3}).At({"/x/a.py:3 in f", "/x/b.py:4 in g", "/x/a.py:3 in f"}),
     R"(ranks 1,3 are in `f` (a.py:3), rank 2 is in `g` (b.py:4): ranks 1-3 (n1, pids 71, 72, 73) have not called AllReduce #24 on communicator "dp")"},
    {"a line and none", VerdictBuilder(C::kMissingRank).Culprits({2, 3}).At({"", "/x/a.py:3 in f"}),
     R"(rank 3 is in `f` (a.py:3): ranks 2-3 (n1, pids 72, 73) have not called AllReduce #24 on communicator "dp")"},
    {"no line", VerdictBuilder(C::kMissingRank).At({"", ""}),
     R"(rank 3 (n1, pid 73) has not called AllReduce #24 on communicator "dp")"},
    {"late at a line", VerdictBuilder(C::kMissingRank).At({"/x/a.py:3 in f"}).Set(&Verdict::late, true),
     R"(rank 3 (n1, pid 73) is in `f` (a.py:3) and is late for AllReduce #24 on communicator "dp")"},

    {"exit", VerdictBuilder(C::kRankExited).Ended("exited normally", 24),
     R"(rank 3 (n1, pid 73) left after 24 calls (exited normally) and never called AllReduce #24 on communicator "dp")"},
    {"exit inside", VerdictBuilder(C::kRankExited).Ended("exited normally", 25),
     R"(rank 3 (n1, pid 73) left after 25 calls (exited normally) inside AllReduce #24 on communicator "dp")"},
    {"exit before joining", VerdictBuilder(C::kRankExited, init).Ended("exited normally", 0),
     R"(rank 3 (n1, pid 73) left (exited normally) and never joined communicator "dp" (CommInitRank))"},
    {"exception", VerdictBuilder(C::kRankExited).Failed(1),
     R"(rank 3 (n1, pid 73) failed after 1 call with "ValueError: no" and never called AllReduce #24 on communicator "dp")"},
    {"exception before joining", VerdictBuilder(C::kRankExited, init).Failed(0),
     R"(rank 3 (n1, pid 73) failed with "ValueError: no" and never joined communicator "dp" (CommInitRank))"},

    {"signal", VerdictBuilder(C::kRankDied).Ended("killed by signal 9", 24),
     R"(rank 3 (n1, pid 73) died (killed by signal 9) before entering AllReduce #24 on communicator "dp")"},
    {"signal inside", VerdictBuilder(C::kRankDied).Ended("killed by signal 9", 25),
     R"(rank 3 (n1, pid 73) died (killed by signal 9) inside AllReduce #24 on communicator "dp")"},
    {"signal in creation", VerdictBuilder(C::kRankDied, init).Ended("killed by signal 9", 0),
     R"(rank 3 (n1, pid 73) died (killed by signal 9) before communicator "dp" was complete (CommInitRank))"},
    {"unknown ending", VerdictBuilder(C::kRankDied).Ended(kEndedUnknown, 24),
     R"(rank 3 (n1, pid 73) ended (exit status unknown) before entering AllReduce #24 on communicator "dp")"},

    {"host", VerdictBuilder(C::kHostLost),
     R"(host n1 is silent, and the other ranks wait for rank 3 in AllReduce #24 on communicator "dp")"},
    {"several hosts", VerdictBuilder(C::kHostLost, init).Culprits({1, 3}).EachOnItsHost(),
     R"(hosts n1, n3 are silent, and the other ranks wait for ranks 1,3 in CommInitRank on communicator "dp")"},

    {"minority", VerdictBuilder(C::kOperationMismatch).Called(Share()),
     R"(rank 3 (n1, pid 73) called Broadcast(float32 x 8, root 0) where the others called AllReduce(float32 x 8, sum): call #24 on communicator "dp")"},
    {"minority at a line", VerdictBuilder(C::kOperationMismatch).Called(Share()).At({"/x/a.py:3 in f"}, "Metric.sync"),
     R"(rank 3 (n1, pid 73) is in `f` (a.py:3), waiting in Metric.sync, and called Broadcast(float32 x 8, root 0) where the others called AllReduce(float32 x 8, sum): call #24 on communicator "dp")"},
    {"tie", VerdictBuilder(C::kOperationMismatch).Tie(),
     R"(rank 2 (n1, pid 72) called AllReduce(float32 x 8, sum) where rank 3 (n1, pid 73) called Broadcast(float32 x 8, root 0): call #24 on communicator "dp")"},
    {"extra call", VerdictBuilder(C::kOperationMismatch).Parted(D::kExtra, Extra(1)),
     R"(rank 3 (n1, pid 73) made an extra call, Broadcast(float32 x 8, root 0), at #24 on communicator "dp", where the others called AllReduce(float32 x 8, sum))"},
    {"extra calls", VerdictBuilder(C::kOperationMismatch).Parted(D::kExtra, Extra(2)),
     R"(rank 3 (n1, pid 73) made 2 extra calls, starting with Broadcast(float32 x 8, root 0), at #24 on communicator "dp", where the others called AllReduce(float32 x 8, sum))"},
    {"skipped call", VerdictBuilder(C::kOperationMismatch).Parted(D::kSkipped, Skipped(1)),
     R"(rank 3 (n1, pid 73) skipped AllReduce(float32 x 8, sum) at #24 on communicator "dp" and called Broadcast(float32 x 8, root 0))"},
    {"skipped calls", VerdictBuilder(C::kOperationMismatch).Parted(D::kSkipped, Skipped(2)),
     R"(rank 3 (n1, pid 73) skipped 2 calls, starting with AllReduce(float32 x 8, sum), at #24 on communicator "dp" and called Broadcast(float32 x 8, root 0))"},
    {"swapped calls", VerdictBuilder(C::kOperationMismatch).Parted(D::kSwapped, {}),
     R"(rank 3 (n1, pid 73) made the same calls as the others in a different order, starting at #24 on communicator "dp": Broadcast(float32 x 8, root 0) where the others called AllReduce(float32 x 8, sum))"},
    {"lost records", VerdictBuilder(C::kOperationMismatch).Set(&Verdict::position_end, 32),
     R"(rank 3 (n1, pid 73) made different calls from the others on communicator "dp", starting between call #24 and call #32)"},
    {"arguments", VerdictBuilder(C::kArgumentMismatch).Called(AllReduce(7)),
     R"(rank 3 (n1, pid 73) called AllReduce(float32 x 7, sum) where the others called AllReduce(float32 x 8, sum): call #24 on communicator "dp")"},

    {"creation", VerdictBuilder(C::kInitIncomplete, split),
     R"(rank 3 (n1, pid 73) never joined communicator "dp" of 4 ranks (CommSplit))"},
    {"before NCCL", VerdictBuilder(C::kInitIncomplete, none).Set(&Verdict::communicator, 0u).Set(&Verdict::start_fault, StartFault::kNotReached),
     R"(rank 3 (n1, pid 73) has not reached the point where the others wait, and no rank has made an NCCL call yet)"},
    {"several before NCCL", VerdictBuilder(C::kInitIncomplete, none).Culprits({2, 3}).Set(&Verdict::communicator, 0u).Set(&Verdict::start_fault, StartFault::kNotReached),
     R"(ranks 2-3 (n1, pids 72, 73) have not reached the point where the others wait, and no rank has made an NCCL call yet)"},

    {"no receive", VerdictBuilder(C::kUnmatchedP2p, Send(1)),
     R"(rank 3 (n1, pid 73) never issued the receive that matches Send to rank 1 of communicator "dp")"},
    {"no send", VerdictBuilder(C::kUnmatchedP2p, Recv(1)),
     R"(rank 3 (n1, pid 73) never issued the send that matches Recv from rank 1 of communicator "dp")"},
    {"one send too many", VerdictBuilder(C::kUnmatchedP2p, Send(1)).Set(&Verdict::divergence, D::kExtra),
     R"(rank 3 (n1, pid 73) issued one Send to rank 1 of communicator "dp" too many: no receive matches it)"},
    {"sizes differ", [] {
       Verdict v = VerdictBuilder(C::kUnmatchedP2p, Send(3)).Culprits({2, 3});
       v.mismatched_fields = {"count"};
       v.culprits[0].call = Send(3);
       v.culprits[1].call = Recv(2);
       return v;
     }(),
     R"(rank 2 (n1, pid 72) called Send(float32 x 8, peer 3), but rank 3 (n1, pid 73) called Recv(float32 x 16, peer 2) on communicator "dp")"},

    {"cycle", VerdictBuilder(C::kDeadlock).Cycle(Reduce(), 2),
     R"(ranks 0-1 wait for each other: rank 0 waits in AllReduce #5 on communicator "a" for rank 1, and rank 1 waits in AllReduce #5 on communicator "b" for rank 0)"},
    {"cycle of sends", VerdictBuilder(C::kDeadlock).Cycle(Send(1), 2),
     R"(ranks 0-1 wait for each other: rank 0 waits in Send to rank 1 of communicator "a" for rank 1, and rank 1 waits in Send to rank 1 of communicator "b" for rank 0)"},
    {"long cycle", VerdictBuilder(C::kDeadlock).Cycle(Reduce(), 5),
     R"(ranks 0-4 wait for each other: rank 0 waits in AllReduce #5 on communicator "a" for rank 1, and rank 1 waits in AllReduce #5 on communicator "b" for rank 2, and rank 2 waits in AllReduce #5 on communicator "a" for rank 3, and 2 more waits)"},

    {"one GPU", VerdictBuilder(C::kBlockedBeforeStart),
     R"(all ranks have entered AllReduce #24 on communicator "dp", but the GPU of rank 3 (n1, pid 73) has not started the call: earlier work blocks its stream)"},
    {"several GPUs", VerdictBuilder(C::kBlockedBeforeStart).Culprits({2, 3}),
     R"(all ranks have entered AllReduce #24 on communicator "dp", but the GPUs of ranks 2-3 (n1, pids 72, 73) have not started the call: earlier work blocks their streams)"},

    {"stands in a queue",
     VerdictBuilder(C::kStandstill).Stands(StandShape::kLast, StandKind::kQueue).Waiting({0, 1}),
     R"(rank 3 (n1, pid 73) waits in a queue of its own threads, and ranks 0-1 wait for it, in a socket: no rank moves; 2 ranks have waited 48 s)"},
    {"stands with its child",
     VerdictBuilder(C::kStandstill)
         .Stands(StandShape::kChild, StandKind::kPipe, "its child 4711 (cat)")
         .Waiting({0}),
     R"(rank 3 (n1, pid 73) waits for its child 4711 (cat), in a pipe, and rank 0 waits for it, in a socket: no rank moves; 1 rank has waited 48 s)"},
    {"lacks a thread",
     VerdictBuilder(C::kStandstill)
         .Stands(StandShape::kLast, StandKind::kQueue)
         .LacksThread("prefetch")
         .Waiting({0, 1}),
     R"(rank 3 (n1, pid 73) waits in a queue of its own threads, without the thread in `prefetch` that the others have, and ranks 0-1 wait for it, in a socket: no rank moves; 2 ranks have waited 48 s)"},
    {"holds a lock",
     VerdictBuilder(C::kStandstill)
         .Stands(StandShape::kElsewhere, StandKind::kSleep, "", "/x/cache.lock")
         .Waiting({0, 1}),
     R"(rank 3 (n1, pid 73) sleeps and holds a lock (/x/cache.lock), and ranks 0-1 wait in a socket: no rank moves; 2 ranks have waited 48 s)"},
    {"holds a lock and waits elsewhere",
     VerdictBuilder(C::kStandstill)
         .Stands(StandShape::kLast, StandKind::kQueue, "", "/x/cache.lock")
         .Waiting({0, 1}),
     R"(rank 3 (n1, pid 73) waits in a queue of its own threads and holds a lock (/x/cache.lock), and ranks 0-1 wait for it, in a socket: no rank moves; 2 ranks have waited 48 s)"},
    {"stands in a ring",
     VerdictBuilder(C::kStandstill)
         .Culprits({0, 3})
         .Stands(StandShape::kRing, StandKind::kSocket)
         .Waiting({1}),
     R"(ranks 0,3 (n1, pids 70, 73) wait for each other, in a socket, and rank 1 waits for them, in a socket: no rank moves; 1 rank has waited 48 s)"},
    {"all stand",
     VerdictBuilder(C::kStandstill)
         .Culprits({})
         .Stands(StandShape::kAll, StandKind::kSemaphore)
         .Waiting({0, 1, 2, 3}),
     R"(all 4 ranks wait in a lock or a semaphore: no rank moves; 4 ranks have waited 48 s)"},
    {"stands after an end",
     VerdictBuilder(C::kStandstill)
         .Stands(StandShape::kEnded, StandKind::kUnknown)
         .Ended("killed by signal 9", 0)
         .Waiting({0, 1}),
     R"(rank 3 (n1, pid 73) was killed by signal 9, and ranks 0-1 wait for it, in a socket: no rank moves; 2 ranks have waited 48 s)"},

    {"no culprit", VerdictBuilder(C::kStalledInFlight).Culprits({}),
     R"(all 4 ranks of communicator "dp" have entered AllReduce #24, which does not finish)"},
    {"least advanced", VerdictBuilder(C::kStalledInFlight).Waiting({0, 1, 2}),
     R"(all 4 ranks of communicator "dp" have entered AllReduce #24, which does not finish; least advanced: rank 3 (n1, pid 73); 3 ranks have waited 48 s)"},
    {"own GPU", VerdictBuilder(C::kStalledInFlight).Transfers(NetworkFault::kOwnGpu).Waiting({0, 1, 2}),
     R"(rank 3 (n1, pid 73) does not send to rank 1 on channel 5: its GPU has not produced the data (AllReduce #24 on communicator "dp"); 3 ranks have waited 48 s)"},
    {"link", VerdictBuilder(C::kStalledInFlight).Transfers(NetworkFault::kLink).Waiting({0, 1, 2}),
     R"(rank 3 (n1, pid 73) has sent to rank 1 on channel 5 what does not arrive: the link or a NIC between them does not carry it (AllReduce #24 on communicator "dp"); 3 ranks have waited 48 s)"},
    {"peer's GPU", VerdictBuilder(C::kStalledInFlight).Transfers(NetworkFault::kPeerGpu),
     R"(rank 3 (n1, pid 73) does not take what rank 1 sends on channel 5: its GPU has not read the data (AllReduce #24 on communicator "dp"))"},
    {"proxy thread", VerdictBuilder(C::kStalledInFlight).Transfers(NetworkFault::kProxy),
     R"(rank 3 (n1, pid 73) has posted no transfer with rank 1 on channel 5: its NCCL proxy thread does not run (AllReduce #24 on communicator "dp"))"},
    {"a GPU of a host", VerdictBuilder(C::kStalledInFlight).Culprits({2, 3}).Transfers(NetworkFault::kOwnGpu),
     R"(ranks 2-3 (n1, pids 72, 73): the GPU of one of them has not produced what rank 3 sends to rank 1 on channel 5 (AllReduce #24 on communicator "dp"))"},
    {"the network names somebody else than the stop", VerdictBuilder(C::kStalledInFlight).Culprits({0, 2}).EachOnItsHost().Transfers(NetworkFault::kOwnGpu),
     R"(all 4 ranks of communicator "dp" have entered AllReduce #24, which does not finish; least advanced: ranks 0,2 (2 hosts))"},
    {"stalled creation", VerdictBuilder(C::kStalledInFlight, init).Culprits({}),
     R"(all 4 ranks of communicator "dp" are inside CommInitRank, which does not finish)"},
    {"stalled sends", VerdictBuilder(C::kStalledInFlight, Send(1)).Culprits({}),
     R"(sends and receives on communicator "dp" match but do not finish (Send))"},
    {"culprit elsewhere", VerdictBuilder(C::kStalledInFlight, early),
     R"(rank 3 (n1, pid 73) does not wait for MPI_Iallreduce #24 on communicator "dp": all ranks have made the call, but it does not finish)"},
    {"culprit that does not test", VerdictBuilder(C::kStalledInFlight).Set(&Verdict::communicator_kind, CommKind::kUcc),
     R"(rank 3 (n1, pid 73) does not wait for AllReduce #24 on ucc communicator "dp": all ranks have made the call, but it does not finish)"},

    {"teardown", VerdictBuilder(C::kTeardownHang, destroy),
     R"(rank 3 (n1, pid 73) has not called CommDestroy of communicator "dp")"},
    {"teardown after exit", VerdictBuilder(C::kTeardownHang, destroy).Ended("exited normally", 24),
     R"(rank 3 (n1, pid 73) left (exited normally) and never called CommDestroy of communicator "dp")"},
    {"teardown while leaving", VerdictBuilder(C::kTeardownHang, destroy).Ended(kFinalizing, 24),
     R"(rank 3 (n1, pid 73) is leaving (inside CommFinalize or CommDestroy) and never called CommDestroy of communicator "dp")"},
    {"teardown with all", VerdictBuilder(C::kTeardownHang, destroy).Culprits({}),
     R"(all expected ranks are inside CommDestroy of communicator "dp", which does not return)"},

    {"error", VerdictBuilder(C::kNcclError),
     R"(NCCL reported an error on rank 3 (n1, pid 73) in or before AllReduce #24 on communicator "dp")"},
    {"an exception in another library", VerdictBuilder(C::kNcclError).Set(&Verdict::communicator_kind, CommKind::kGloo),
     R"(a call threw an exception on rank 3 (n1, pid 73) in or before AllReduce #24 on gloo communicator "dp")"},
    {"error with its call", VerdictBuilder(C::kNcclError).Result(4, {Op::kBroadcast, 7, kNoReduction, 11, 8}),
     R"(NCCL reported ncclInvalidArgument (Broadcast root 11 of 4 ranks) on rank 3 (n1, pid 73) in or before AllReduce #24 on communicator "dp")"},
    {"error without a call", VerdictBuilder(C::kNcclError).Result(2, {}),
     R"(NCCL reported ncclSystemError on rank 3 (n1, pid 73) in or before AllReduce #24 on communicator "dp")"},
    {"two threads", VerdictBuilder(C::kConcurrentUse),
     R"(two threads of rank 3 (n1, pid 73) were inside calls on communicator "dp" at the same time)"},
    {"straggler", VerdictBuilder(C::kStraggler).Set(&Verdict::late_ns, 140'000'000),
     R"(rank 3 (n1, pid 73) is the last to enter nearly every call on communicator "dp", typically by 140 ms; nothing hangs)"},
  };
}
// clang-format on

TEST(SentencesTest, EachVerdictHasItsSentence) {
  for (const Entry& entry : Table()) {
    EXPECT_EQ(WriteSummary(entry.verdict), entry.sentence) << entry.shows;
  }
}

// Long names and 12,000 culprits with gaps between them, each on a host of its own.
Verdict Enormous(Verdict v) {
  v.communicator_name = std::string(255, 'c');
  const Culprit first = v.culprits.empty() ? Culprit() : v.culprits.front();
  v.culprits.assign(12'000, first);
  for (size_t i = 0; i < v.culprits.size(); ++i) {
    Culprit& culprit = v.culprits[i];
    culprit.rank = static_cast<int32_t>(3 * i);
    culprit.host = absl::StrCat(std::string(200, 'h'), i);
    if (!culprit.error.empty()) culprit.error = std::string(1024, 'e');
    if (culprit.call.op != Op::kNone) culprit.call.count = i;
    v.waiting_ranks.push_back(culprit.rank + 1);
  }
  v.places.assign(64, {});
  for (size_t i = 0; i < v.places.size(); ++i) {
    v.places[i].at = absl::StrCat("/x/", std::string(200, 'f'), ".py:3 in ", std::string(200, 'g'));
    v.places[i].inside = std::string(200, 'i');
  }
  return v;
}

TEST(SentencesTest, NoSentenceIsLong) {
  for (const Entry& entry : Table()) {
    const std::string sentence = WriteSummary(Enormous(entry.verdict));
    EXPECT_LE(sentence.size(), kLongestSentence) << entry.shows << ": " << sentence;
    if (entry.verdict.cause == Cause::kStraggler) continue;  // no rank waits
    EXPECT_NE(sentence.find(" 48 s"), std::string::npos) << entry.shows << ": " << sentence;
  }
}

// Of the sides of a tie those stay that have room, whole; the ranks of the others are only named.
TEST(SentencesTest, SidesOfATieThatHaveNoRoomAreNamedByTheirRanks) {
  Verdict v = VerdictBuilder(Cause::kArgumentMismatch).Culprits({0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  for (Culprit& culprit : v.culprits) culprit.call = AllReduce(1000 + culprit.rank);
  v.call = v.culprits[0].call;
  EXPECT_EQ(
      WriteSummary(v),
      "rank 0 (n1, pid 70) called AllReduce(float32 x 1000, sum) where rank 1 (n1, pid 71) called "
      "AllReduce(float32 x 1001, sum) where rank 2 (n1, pid 72) called AllReduce(float32 x 1002, "
      "sum) where rank 3 (n1, pid 73) called AllReduce(float32 x 1003, sum) where ranks 4-9 made "
      "other calls: call #24 on communicator \"dp\"");
}

TEST(SentencesTest, TheTableHasEveryCause) {
  std::set<Cause> causes;
  for (const Entry& entry : Table()) causes.insert(entry.verdict.cause);
#define X(name, text) EXPECT_EQ(causes.count(Cause::name), 1u) << text;
  ROLLCALL_CAUSES(X)
#undef X
}

TEST(SentencesTest, CulpritsThatEndedDifferentlyShareNoEnding) {
  Verdict v = VerdictBuilder(Cause::kRankDied).Culprits({2, 3}).Ended(kEndedUnknown, 24);
  v.culprits[1].ending = "killed by signal 9";
  EXPECT_NE(WriteSummary(v).find(" ended before entering"), std::string::npos) << WriteSummary(v);
}

TEST(SentencesTest, CountsTakeThePluralExceptForOne) {
  EXPECT_EQ(CountInWords(0, "call", "calls"), "0 calls");
  EXPECT_EQ(CountInWords(1, "call", "calls"), "1 call");
  EXPECT_EQ(CountInWords(24, "call", "calls"), "24 calls");
}

TEST(SentencesTest, RankLists) {
  EXPECT_EQ(RankList({}), "");
  EXPECT_EQ(RankList({3}), "3");
  EXPECT_EQ(RankList({4, 2, 0, 1, 2}), "0-2,4");
  EXPECT_EQ(RanksInWords({3}), "rank 3");
  EXPECT_EQ(RanksInWords({-1}), "rank -1");
  EXPECT_EQ(RanksInWords({0, 1, 2, 63}), "ranks 0-2,63");
}

TEST(SentencesTest, Durations) {
  EXPECT_EQ(DurationInWords(-5), "0 s");
  EXPECT_EQ(DurationInWords(450'000'000), "0.4 s");
  EXPECT_EQ(DurationInWords(48 * kSecondNs), "48 s");
  EXPECT_EQ(DurationInWords(250 * kSecondNs), "4 min 10 s");
  EXPECT_EQ(DurationInWords(11100 * kSecondNs), "3 h 5 min");
}

TEST(SentencesTest, Calls) {
  EXPECT_EQ(CallInWords(AllReduce()), "AllReduce(float32 x 1048576, sum)");
  EXPECT_EQ(CallInWords(Broadcast()), "Broadcast(float32 x 128, root 0)");
  CallArgs shaped = AllReduce();
  shaped.shape = InternShape("[1024, 1024]");
  EXPECT_EQ(CallInWords(shaped), "AllReduce(float32 x 1048576 as [1024, 1024], sum)");
  EXPECT_EQ(CallInWords({Op::kMPI_Bcast, kNoDtype, kNoReduction, 2, 64}),
            "MPI_Bcast(64 bytes, root 2)");
  EXPECT_EQ(CallInWords({Op::kMPI_Barrier}), "MPI_Barrier()");
  EXPECT_EQ(CallInWords({static_cast<Op>(250), 77, 9, kNoPeer, 1}),
            "call with op code 250(dtype 77 x 1, reduction 9)");
}

std::vector<int32_t> EverySecond(int32_t count) {
  std::vector<int32_t> ranks;
  for (int32_t i = 0; i < count; ++i) ranks.push_back(2 * i);
  return ranks;
}

TEST(SentencesTest, NamesAHandfulOfVeryManyRanks) {
  EXPECT_EQ(RanksInWords({}), "rank ");
  EXPECT_EQ(RanksInWords(EverySecond(50'000)), "ranks 0,2,4,6,8,10,12,14 and 49992 more");
  EXPECT_EQ(RanksInWords(EverySecond(10)), "ranks 0,2,4,6,8,10,12,14,16,18");
}

TEST(SentencesTest, NamesAHandfulOfVeryManyHosts) {
  EXPECT_EQ(HostsInWords({"a"}), "a");
  EXPECT_EQ(HostsInWords({"a", "b", "c"}), "a, b, c");
  EXPECT_EQ(HostsInWords({"a", "b", "c", "d"}), "4 hosts, among them a, b");
}

TEST(RankRangesTest, JoinsRangesInAnyOrder) {
  const RankRanges ranges(std::vector<RankRange>{{9, 12}, {0, 3}, {4, 4}, {2, 3}, {11, 20}});
  EXPECT_EQ(ranges.List(), "0-4,9-20");
  EXPECT_EQ(ranges.size(), 17u);
  EXPECT_EQ(ranges.First(7), (std::vector<int32_t>{0, 1, 2, 3, 4, 9, 10}));
  EXPECT_EQ(ranges.First(100).size(), 17u);
  EXPECT_EQ(RankRanges(std::vector<int32_t>{0, -1}).List(), "-1,0");
  EXPECT_EQ(RankRanges(std::string("2147483646-2147483647,5,5-6")).size(), 4u);
}

TEST(RankRangesTest, ReadsItsOwnLists) {
  const RankRanges ranges("-1,0-7,12");
  EXPECT_EQ(ranges.List(), "-1,0-7,12");
  EXPECT_EQ(ranges.InWords(), "ranks -1,0-7,12");
  for (const int32_t rank : {-1, 0, 3, 7, 12}) EXPECT_TRUE(ranges.Contains(rank)) << rank;
  for (const int32_t rank : {-2, 8, 11, 13}) EXPECT_FALSE(ranges.Contains(rank)) << rank;
  EXPECT_EQ(RankRanges(EverySecond(50'000)).InWords(), RanksInWords(EverySecond(50'000)));
  EXPECT_TRUE(RankRanges(std::string("x,7-3,4-y,")).empty());
}

}  // namespace
}  // namespace rollcall
