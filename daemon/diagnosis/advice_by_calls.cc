// SPDX-License-Identifier: Apache-2.0
// CallAdvice(): for the shape of the calls. Where stacks show what the culprits do, a pattern that
// only guesses it gives way.
#include <algorithm>
#include <set>

#include "daemon/diagnosis/advice.h"
#include "daemon/diagnosis/advice_departures.h"
#include "daemon/diagnosis/advice_patterns.h"
#include "daemon/words/stops.h"

namespace rollcall {
namespace {

// Calls before this position belong to the set-up: frameworks verify parameter shapes,
// broadcast the first weights and enter a barrier.
constexpr uint64_t kSetupCalls = 3;
// From this position on the job is in its training loop, and calls repeat in each step.
constexpr uint64_t kLoopCalls = 5;

bool IsGradientExchange(Op op) {
  return op == Op::kAllReduce || op == Op::kReduceScatter || op == Op::kAllGather;
}

bool CrossesCommunicators(const Verdict& v) {
  std::set<uint64_t> communicators;
  for (const WaitEdge& edge : v.chain) communicators.insert(edge.communicator);
  return communicators.size() > 1;
}

// True also for the communicator of two ranks that torch makes for their first message.
bool IsMessage(const WaitEdge& edge) {
  return OpKind(edge.call.op) == CallKind::kP2p ||
         (OpKind(edge.call.op) == CallKind::kCreate && edge.communicator_size == 2);
}

bool AllSendFirst(const Verdict& v) {
  return Is(v, Cause::kDeadlock) && !v.chain.empty() &&
         std::all_of(v.chain.begin(), v.chain.end(), IsMessage);
}

bool IsBeforeNccl(const Verdict& v) {
  return v.start_fault == StartFault::kNotReached || v.start_fault == StartFault::kWaitsElsewhere;
}

bool Rank0OnlySetup(const Verdict& v) {
  if (IsBeforeNccl(v)) return true;
  if (v.position >= kSetupCalls || Creates(v) || v.divergence == DivergenceKind::kSwapped) {
    return false;
  }
  if (Is(v, Cause::kMissingRank) && v.divergence == DivergenceKind::kSkipped) return false;
  if (OpKind(v.call.op) == CallKind::kP2p) return false;  // its position counts collectives only
  if (Is(v, Cause::kArgumentMismatch)) return HasField(v, "count");
  return Is(v, Cause::kMissingRank) || Is(v, Cause::kOperationMismatch);
}

bool LacksAMember(const Verdict& v) { return v.all_ranks_live; }

bool InitOrder(const Verdict& v) {
  if (v.is_one_rank || v.all_ranks_live || HasField(v, "size") ||
      v.divergence == DivergenceKind::kSkipped)
    return false;
  return Is(v, Cause::kInitIncomplete) ||
         (Creates(v) && !Is(v, Cause::kStalledInFlight) && !AllSendFirst(v));
}

bool MakesChild(Op op) { return op == Op::kCommSplit || op == Op::kCommShrink; }

// Some wait for the others to create a communicator, and these wait in torch's store for its id.
bool NamesOutOfStep(const Verdict& v) {
  return Is(v, Cause::kInitIncomplete) && PlacesAreKnown(v) &&
         CulpritIsIn(v, {"TCPStore::doGet", "TCPStore::get"}) &&
         WaiterIsIn(v, {"CommInitRank", "init_rank", "initNCCLComm"});
}

bool SplitNotByAll(const Verdict& v) {
  if (NamesOutOfStep(v) || NumbersOutOfStep(v)) return true;
  return Is(v, Cause::kInitIncomplete) && v.call.op != Op::kNone && MakesChild(v.call.op) &&
         !v.culprits.empty() && AnyCulprit(v, [](const Culprit& c) { return c.process >= 0; });
}

bool CreationStalls(const Verdict& v) { return StallsAlone(v) && Creates(v); }

bool FirstCallStalls(const Verdict& v) {
  return StallsAlone(v) && !Creates(v) && !IsOfMpi(v.call.op) && v.position < kSetupCalls;
}

bool MpiCallStays(const Verdict& v) {
  return IsOfMpi(v.call.op) && AreCulpritsElsewhere(v) && !IsAnyStopped(v.culprits);
}

bool WorkedForLong(const Verdict& v) { return StallsAlone(v) && v.position >= 1000; }

bool OnlyOneCalls(const Verdict& v) {
  return Is(v, Cause::kMissingRank) && v.position >= kSetupCalls && v.waiting_ranks.size() == 1 &&
         v.communicator_size > 2 &&
         CountCulprits(v.culprits) + 1 == static_cast<size_t>(v.communicator_size);
}

bool CallsSwapped(const Verdict& v) {
  return IsContradiction(v.cause) && v.divergence == DivergenceKind::kSwapped;
}

bool CallTooMany(const Verdict& v) {
  return IsContradiction(v.cause) && v.divergence == DivergenceKind::kExtra;
}

bool CallSkipped(const Verdict& v) {
  const bool is_absence = Is(v, Cause::kMissingRank) || Is(v, Cause::kInitIncomplete);
  if (ShowsTheWrongGroup(v)) return false;
  return (IsContradiction(v.cause) || is_absence) && v.divergence == DivergenceKind::kSkipped;
}

// One call whose argument differs, and not two calls that have nothing to do with each other.
bool ArgumentDiffers(const Verdict& v, const char* field) {
  if (!Is(v, Cause::kArgumentMismatch) || !HasField(v, field)) return false;
  return HasField(v, "count") ? IsOneLine(v) : MayBeOneLine(v);
}

bool TypeDiffers(const Verdict& v) { return ArgumentDiffers(v, "dtype"); }
bool RootDiffers(const Verdict& v) { return ArgumentDiffers(v, "root"); }
bool ReductionDiffers(const Verdict& v) { return ArgumentDiffers(v, "reduction"); }

bool SplitSizesDiffer(const Verdict& v) {
  if (Is(v, Cause::kUnmatchedP2p)) return HasField(v, "count");
  return Is(v, Cause::kArgumentMismatch) && HasField(v, "count") && v.call.op == Op::kAlltoAll;
}

bool GradientsDiffer(const Verdict& v) {
  const bool reduces = v.call.op == Op::kAllReduce || v.call.op == Op::kReduceScatter;
  return Is(v, Cause::kArgumentMismatch) && HasField(v, "count") && reduces &&
         v.position >= kSetupCalls && MayBeOneLine(v) && !v.is_usual_elsewhere;
}

bool HasAKey(const Verdict& v) {
  return std::any_of(v.chain.begin(), v.chain.end(), [](const WaitEdge& edge) {
    return edge.communicator_kind == CommKind::kStore;
  });
}

bool CommunicatorsInOtherOrders(const Verdict& v) {
  const bool crosses = CrossesCommunicators(v) && !AllSendFirst(v) && !HasAKey(v);
  return v.is_usual_elsewhere || (Is(v, Cause::kDeadlock) && crosses) || !v.beside.empty();
}

bool TagsDiffer(const Verdict& v) { return Is(v, Cause::kUnmatchedP2p) && HasField(v, "tag"); }

bool PipelineOutOfStep(const Verdict& v) {
  return Is(v, Cause::kUnmatchedP2p) && !HasField(v, "count") && !TagsDiffer(v);
}

bool AbortsAlone(const Verdict& v) {
  return Is(v, Cause::kTeardownHang) && v.call.op == Op::kCommAbort;
}

// It works in a loop of its own, which may never end.
bool LateInALoop(const Verdict& v) {
  return v.late && IsAbsence(v) &&
         std::any_of(v.places.begin(), v.places.end(),
                     [&v](const StackPlace& place) { return IsInALoopOfItsOwn(v, place); });
}

bool Late(const Verdict& v) {
  return v.late && !Is(v, Cause::kRankExited) && !Is(v, Cause::kRankDied);
}

// The program counts its steps, and both sides have begun as many.
bool AreInOneStep(const Verdict& v) {
  return v.step >= 0 && !v.culprits.empty() &&
         std::all_of(v.culprits.begin(), v.culprits.end(),
                     [&](const Culprit& c) { return c.step == v.step; });
}

// A single number is no batch.
bool IsOneSideScalar(const Verdict& v) {
  return v.call.count == 1 || AnyCulprit(v, [](const Culprit& c) { return c.call.count == 1; });
}

bool UnevenInputs(const Verdict& v) {
  if (!IsGradientExchange(v.call.op) || v.position < kLoopCalls) return false;
  if (Is(v, Cause::kRankExited)) {
    return std::all_of(v.culprits.begin(), v.culprits.end(),
                       [](const Culprit& c) { return c.error.empty() && c.exit_code <= 0; });
  }
  if (Is(v, Cause::kMissingRank)) return !PlacesAreKnown(v);
  // The call of another step than the others' has nothing to do with the size of a batch.
  return Is(v, Cause::kArgumentMismatch) && HasField(v, "count") && MayBeOneLine(v) &&
         !v.odd_call_is_usual && !v.is_usual_elsewhere && !AreInOneStep(v) && !IsOneSideScalar(v);
}

// The buffers of DistributedDataParallel, where no stack shows what broadcasts. It makes several
// calls before its first forward pass.
bool BroadcastMeetsAllReduce(const Verdict& v) {
  if (v.position < kSetupCalls) return false;
  if (PlacesAreKnown(v) && !CulpritIsIn(v, {"DistributedDataParallel"})) return false;
  return Meets(v, Op::kBroadcast, Op::kAllReduce) && !MeetsBarrier(v);
}

bool GatherMeetsBarrier(const Verdict& v) {
  return !PlacesAreKnown(v) && v.position >= kSetupCalls && MeetsBarrier(v) &&
         (Meets(v, Op::kAllGather, Op::kAllReduce) || Meets(v, Op::kBroadcast, Op::kAllReduce));
}

}  // namespace

const std::vector<AdviceEntry>& CallAdvice() {
  static const auto* const kTable = new std::vector<AdviceEntry>{
      {"collective-on-one-rank", OnlyOneCalls, "one rank waits, and all others are absent",
       "The collective is under `if rank == 0:`, or inside work that only one rank does: logging a "
       "metric, printing a sharded tensor.",
       "Only one rank makes this call. Move the call out of the branch on the rank, or compute the "
       "value without communication."},
      {"buffer-broadcast", BroadcastMeetsAllReduce,
       "a Broadcast meets an AllReduce of more than one element, and no stack contradicts",
       "DistributedDataParallel broadcasts buffers in each forward pass. A rank that validates "
       "alone makes a broadcast that meets the others' gradient all-reduce.",
       "One rank runs forward passes that the others do not (validation on rank 0 only), and its "
       "buffer broadcast meets their gradient all-reduce. Validate on every rank, or on the bare "
       "module (model.module), or build DistributedDataParallel with broadcast_buffers=False."},
      {"rank0-only-checkpoint", GatherMeetsBarrier,
       "an AllGather or Broadcast meets a barrier, and no stack is known",
       "All ranks must take part to gather a full state dict. Code that asks for it under `if rank "
       "== 0:` leaves the others in a barrier.",
       "Only some ranks take part in gathering the state or in saving it. Gather on every rank and "
       "write the file on one, or save a sharded state dict. If a signal, a time or a loss decides "
       "when to save, let all ranks agree on it first."},
      {"rank0-only-setup", Rank0OnlySetup,
       "the first calls of a communicator differ or are missing",
       "The first collectives verify parameters and share weights. They expose a data set or model "
       "that only one rank creates, a missed barrier, or a launch in the wrong place.",
       "The set-up differs between ranks: one rank alone creates something, or misses a barrier. "
       "Every rank must reach the barrier, create the data and call launch() at the entry point; "
       "also check that the model has the same parameters and shapes everywhere."},
      {"alltoall-splits", SplitSizesDiffer,
       "a send and its receive, or the AlltoAll of two ranks, have different sizes",
       "Experts get a different number of tokens on each rank, so ranks must exchange sizes before "
       "data. Two ranks that each compute the size can get different results.",
       "The two sides disagree on the size of the message. Exchange the split sizes first and use "
       "the received ones; for pipelines check micro-batch and sequence length on both stages."},
      {"calls-swapped", CallsSwapped, "the culprits make the same calls in a different order",
       "The order of the calls comes from a set or dict, from several threads, or from hooks that "
       "run when gradients are ready.",
       "The ranks make the same calls in different orders. Iterate in a sorted order, and issue "
       "the calls of one communicator from one thread."},
      {"extra-call", CallTooMany, "the culprits make calls that the others do not",
       "Work that only some ranks do contains a collective: a metric's compute(), logging a "
       "reduced loss, saving, an extra forward pass.",
       "The culprits make an extra call. Look for metrics, logging, saving or validation inside a "
       "branch on the rank, at the code line of that call or shortly before it."},
      {"skipped-call", CallSkipped, "the culprits skip calls that the others make",
       "The code branches on data: an empty batch, a loss that is NaN, an early `continue`, a step "
       "that the gradient scaler skips, an expert without tokens.",
       "The culprits skip a call. Look for a branch on data or loss before it. Let all ranks "
       "decide together (reduce the flag first), or make the call with zeros."},
      {"type-differs", TypeDiffers, "the data type differs",
       "Some ranks use mixed precision and others do not, or one rank converts a parameter.",
       "The data type differs between ranks. Use autocast and the same precision on all of them, "
       "and check parameters that one rank loads or converts by itself."},
      {"root-differs", RootDiffers, "the root differs",
       "Frameworks expect global ranks, while NCCL expects ranks within the communicator. Programs "
       "easily pass the wrong one as the source in a sub-group.",
       "The root differs between ranks. Check whether the source is a rank of the whole job or of "
       "this communicator, and that all ranks compute the same one."},
      {"reduction-differs", ReductionDiffers, "the reduction differs",
       "One side sums and divides, and the other averages; or only some ranks set a hook or "
       "option.",
       "The reduction differs between ranks, and the result is wrong even if nothing hangs. Use "
       "the same gradient hooks and the same averaging on all ranks."},
      {"uneven-inputs", UnevenInputs,
       "ranks left before a gradient exchange, pass different counts, or are absent from it at an "
       "unknown line",
       "One rank gets fewer or smaller steps from a sampler without set_epoch(), a kept last "
       "batch, or samples that only this rank drops.",
       "One rank has fewer steps than the others, or a last batch of another size. Use "
       "drop_last=True or pad the data, call the sampler's set_epoch() each epoch, drop no samples "
       "silently on one rank, or wrap the loop in DistributedDataParallel's join()."},
      {"gradients-differ", GradientsDiffer,
       "the count of an AllReduce or ReduceScatter in the training loop differs",
       "The ranks have gradients for different parameters: only some of them use a branch, an "
       "expert or an adapter.",
       "The ranks reduce gradients of different size, because only some ranks use some parameters "
       "(branches, experts, adapters). Use find_unused_parameters=True, or make every rank touch "
       "all of them."},
      {"split-on-all-ranks", SplitNotByAll,
       "some ranks do not create a split or another child communicator, or wait in torch's store "
       "for the id of the one that the others create",
       "All ranks of the parent must call new_group() and split in the same order, also those that "
       "will not be members. torch numbers its groups by these calls.",
       "Not all ranks create this sub-communicator. Call new_group() or split on every rank, in "
       "the same order, also on ranks that will not use it."},
      {"first-call-by-all-members", LacksAMember,
       "a member of a communicator is not known, and all ranks of the job live",
       "torch creates the communicator of a group with the group's first call. A member that does "
       "not make that call never joins: its condition for the call, or its list of the members, is "
       "another one.",
       "All ranks of the job live, so one of them has not made its first call in this group. Compare "
       "the condition of that call, and the list of the group's ranks, on all ranks."},
      {"init-order", InitOrder, "ranks have not joined a communicator",
       "All ranks load the model at the same time, and one rank is far behind, dead, or busy with "
       "other work.",
       "Not all ranks have joined the communicator. Check what the absent ranks do. Load the model "
       "on a few ranks at a time, load straight to the device, and check that the GPUs are alike "
       "and that all ranks create their communicators in the same order."},
      {"bootstrap-network", CreationStalls, "all ranks are inside the creation of a communicator",
       "NCCL connects its ranks over TCP first. It waits if the interface is wrong, if a firewall "
       "separates the hosts, or if only one side can reach the address.",
       "All ranks create the communicator but cannot connect. Set NCCL_SOCKET_IFNAME to the "
       "interface that all hosts share, open the firewall between them, and check the addresses "
       "that NCCL_DEBUG=INFO prints."},
      {"mpi-goes-on-inside-mpi", MpiCallStays,
       "stalled_in_flight of an MPI call, and the culprit is outside of MPI",
       "MPI may progress a call only while the rank is inside an MPI call: a nonblocking one, and "
       "also what a rank still owes to others in a call from which it has returned.",
       "The rank named here has made the call and does other work. Let it reach its next call of "
       "MPI sooner, call MPI_Test or MPI_Iprobe now and then while it works, or give MPI a thread "
       "of its own (MPICH_ASYNC_PROGRESS=1)."},
      {"first-call-transport", FirstCallStalls, "the first calls of a communicator do not end",
       "NCCL sets up its transports at the first use. Blocked GPU-to-GPU access (ACS, virtual "
       "machines), wrong InfiniBand settings or a small /dev/shm stop the first call.",
       "The first transfer does not arrive. Try NCCL_P2P_DISABLE=1, then NCCL_SHM_DISABLE=1, then "
       "NCCL_IB_DISABLE=1: the setting that helps names the transport. Check ACS and /dev/shm."},
      {"worked-for-long", WorkedForLong,
       "a call stalls in flight after a thousand successful calls",
       "The program and the set-up worked, so hardware or network broke: an unstable link, a "
       "switch that drops packets, or a GPU that has fallen off the bus.",
       "The call worked a thousand times, so look for the change at that moment: link counters, "
       "switch logs, `dmesg` for Xid and for the network card, on the hosts of this communicator."},
      {"communicators-in-one-order", CommunicatorsInOtherOrders,
       "a cycle over several communicators, open calls of two threads on the same GPUs, or a call that "
       "the culprit has always made on another communicator",
       "When ranks issue calls on two communicators in different orders, each kernel occupies the "
       "GPU and waits for the other kernel.",
       "Issue calls on different communicators in the same order on all ranks, and from one thread "
       "or stream; check which communicator each call gets. From NCCL 2.26 on, NCCL_LAUNCH_ORDER_IMPLICIT=1 keeps the order of the host."},
      {"all-send-first", AllSendFirst, "a cycle of sends and receives",
       "A send may wait for its receive. If every rank sends before it receives, no rank receives.",
       "Every rank in the ring waits for the next. Put each send and its receive into one group "
       "(batch_isend_irecv, ncclGroupStart), or let even ranks send first and odd ones receive."},
      {"tags-differ", TagsDiffer,
       "a rank waits for a message with one tag, and its peer has sent one with another",
       "Each rank counts by itself what it makes the tag of: its rounds, its requests, its micro-"
       "batches. One of them skips a number, repeats one, or starts elsewhere.",
       "The two ends of a message have different tags. Make the tag from a number that both ranks "
       "know (the step of the loop, or a number that one sends to the other), and look at what "
       "raises it on each side."},
      {"pipeline-out-of-step", PipelineOutOfStep, "a send or receive without its other end",
       "The stages of a pipeline disagree on the schedule: a different number of micro-batches, an "
       "early exit, or a wrong peer.",
       "The peer has not issued the other end. Check that both stages run the same schedule with "
       "the same number of micro-batches, and that each passes the other's rank within the "
       "communicator."},
      {"abort-on-all-ranks", AbortsAlone, "CommAbort does not return",
       "Aborting waits for the device and for threads that are inside other NCCL calls of the "
       "process.",
       "CommAbort waits. Call it on all ranks at about the same time, from a thread that holds no "
       "lock that the other threads need. End the process if CommAbort does not return."},
      {"loop-without-end", LateInALoop,
       "the culprits use the CPU in a loop that the others are not in",
       "A loop that searches, retries or draws again until something holds never ends where it "
       "cannot hold: a box without a width, a list that stays empty.",
       "The culprit works in a loop of its own. If that loop cannot end on the data that this rank "
       "has, bound its passes. If it is meant to take so long (validation, saving, compiling), "
       "raise --hang-after, or spread the work over the ranks."},
      {"late-rank", Late, "the culprits use the CPU and their stacks change",
       "The culprits do work that takes longer than usual, and may still enter the call.",
       "The culprit works and is not stuck: one rank alone validates, saves or compiles. If this "
       "is intended, raise --hang-after; otherwise spread the work over the ranks."},
  };
  return *kTable;
}

}  // namespace rollcall
