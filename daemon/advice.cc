#include "daemon/advice.h"

#include <algorithm>

namespace rollcall {
namespace {

// Before this position a communicator is being set up: frameworks verify
// parameter shapes, broadcast the first weights, meet in a barrier.
constexpr uint64_t kSetupCalls = 3;
// From here on the job is in its loop, and calls repeat from step to step.
constexpr uint64_t kLoopCalls = 5;

bool Is(const Verdict& v, Cause cause) { return v.cause == cause; }

bool HasField(const Verdict& v, const char* field) {
  return std::find(v.mismatched_fields.begin(), v.mismatched_fields.end(), field) !=
         v.mismatched_fields.end();
}

// Is it `a` on one side and `b` on the other?
bool Meets(const Verdict& v, Op a, Op b) {
  if (!Is(v, Cause::kOperationMismatch)) return false;
  return std::any_of(v.culprits.begin(), v.culprits.end(), [&](const Culprit& culprit) {
    const Op theirs = Canonical(culprit.call.op);
    const Op others = Canonical(v.call.op);
    return (theirs == a && others == b) || (theirs == b && others == a);
  });
}

bool IsGradientExchange(Op op) {
  return op == Op::kAllReduce || op == Op::kReduceScatter || op == Op::kAllGather;
}

bool UnevenInputs(const Verdict& v) {
  if (Is(v, Cause::kRankExited)) return v.position >= 1 && IsGradientExchange(v.call.op);
  if (v.position < kLoopCalls) return false;
  if (Is(v, Cause::kMissingRank)) return IsGradientExchange(v.call.op);
  return Is(v, Cause::kArgumentMismatch) && HasField(v, "count");
}

bool InitOrder(const Verdict& v) {
  return Is(v, Cause::kInitIncomplete) || KindOf(v.call.op) == CallKind::kCreate;
}

bool Rank0OnlySetup(const Verdict& v) {
  if (v.position >= kSetupCalls || KindOf(v.call.op) == CallKind::kCreate) return false;
  return Is(v, Cause::kMissingRank) || Is(v, Cause::kRankExited) || IsContradiction(v.cause);
}

bool BufferBroadcast(const Verdict& v) {
  if (Meets(v, Op::kBroadcast, Op::kAllReduce)) return true;
  return Is(v, Cause::kMissingRank) && v.position >= kLoopCalls &&
         Canonical(v.call.op) == Op::kBroadcast;
}

bool Rank0OnlyCheckpoint(const Verdict& v) {
  if (Meets(v, Op::kAllGather, Op::kAllReduce) || Meets(v, Op::kAllGather, Op::kBroadcast)) {
    return true;
  }
  return Is(v, Cause::kMissingRank) && v.call.op == Op::kAllGather &&
         v.waiting_ranks.size() < v.culprits.size();
}

bool MissingRank(const Verdict& v) { return Is(v, Cause::kMissingRank); }
bool RankExited(const Verdict& v) { return Is(v, Cause::kRankExited); }
bool RankDied(const Verdict& v) { return Is(v, Cause::kRankDied); }
bool OperationMismatch(const Verdict& v) { return Is(v, Cause::kOperationMismatch); }
bool ArgumentMismatch(const Verdict& v) { return Is(v, Cause::kArgumentMismatch); }
bool Stalled(const Verdict& v) { return Is(v, Cause::kStalledInFlight); }

struct Entry {
  const char* id;
  bool (*fits)(const Verdict&);
  const char* text;
};

// Known mistakes first, the most telling before others; then what holds for a
// cause in general.
constexpr Entry kTable[] = {
    {"buffer-broadcast", BufferBroadcast,
     "One rank runs forward passes that the others do not (validation on rank 0 only), and its "
     "buffer broadcast meets their gradient all-reduce. Validate on every rank, or on the bare "
     "module (model.module), or build DistributedDataParallel with broadcast_buffers=False."},
    {"rank0-only-checkpoint", Rank0OnlyCheckpoint,
     "Only some ranks take part in gathering the full state dict while the others wait in a "
     "barrier. Call it on every rank and write the file on one, or save a sharded state dict."},
    {"rank0-only-setup", Rank0OnlySetup,
     "Set-up differs between ranks: something is made on one rank only, or a barrier is missed. "
     "Every rank must reach the barrier, create the data and call launch() at the entry point; "
     "also check that the model has the same parameters and shapes everywhere."},
    {"uneven-inputs", UnevenInputs,
     "One rank has fewer steps than the others, or a last batch of another size. Use "
     "drop_last=True or pad the data, call the sampler's set_epoch() each epoch, drop no samples "
     "silently on one rank, or wrap the loop in DistributedDataParallel's join()."},
    {"init-order", InitOrder,
     "Not all ranks have joined the communicator: look at what the absent ones are doing. Stagger "
     "loading of the model, load straight to the device, check that the GPUs are alike, and that "
     "all ranks create their communicators in the same order."},
    {"find-why-it-died", RankDied,
     "Look for the end of that process: its own log, `dmesg` for the out-of-memory killer or a GPU "
     "fault (Xid), the scheduler's log. The others cannot go on without it: restart the job."},
    {"look-at-absent-rank", MissingRank,
     "The stack of the absent rank shows what it does instead. Look for work that only this rank "
     "does between two calls (data loading, validation, saving, logging), for a branch on the "
     "rank, and for an exception that was swallowed."},
    {"why-it-left", RankExited,
     "That rank has ended its part in good order while the others still count on it. Make all "
     "ranks leave the loop at the same step, and let them meet in a barrier before they leave."},
    {"same-calls-everywhere", OperationMismatch,
     "All ranks must make the same calls in the same order on a communicator. Look for calls "
     "inside a branch on the rank or on data, near the first call that differs."},
    {"same-arguments-everywhere", ArgumentMismatch,
     "All ranks must pass the same count, data type, reduction and root. NCCL does not check it: "
     "the call may hang, or end with wrong data. Look for shapes that depend on the rank's data."},
    {"check-network-and-gpu", Stalled,
     "All ranks are in the call, so the program is not at fault: check the network (link errors, "
     "NCCL_DEBUG=INFO for the interfaces in use) and the GPUs (`dmesg` for Xid, nvidia-smi) of "
     "the least advanced ranks first."},
};

}  // namespace

std::vector<Advice> AdviceFor(const Verdict& verdict) {
  std::vector<Advice> advice;
  for (const Entry& entry : kTable) {
    if (entry.fits(verdict)) advice.push_back({entry.id, entry.text});
  }
  return advice;
}

}  // namespace rollcall
