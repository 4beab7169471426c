// SPDX-License-Identifier: Apache-2.0
// GeneralAdvice(): one entry for each cause.
#include "daemon/diagnosis/advice.h"
#include "daemon/diagnosis/advice_patterns.h"

namespace rollcall {
namespace {

template <Cause kCause>
bool HasCause(const Verdict& v) {
  return v.cause == kCause;
}

bool RanksHaveNotJoined(const Verdict& v) {
  return v.cause == Cause::kInitIncomplete && !v.is_one_rank && !HasField(v, "size");
}

}  // namespace

const std::vector<AdviceEntry>& GeneralAdvice() {
  static const auto* const kTable = new std::vector<AdviceEntry>{
      {"find-why-it-died", HasCause<Cause::kRankDied>, "rank_died",
       "A process died: a signal or an error code ended it, not its own exit.",
       "Find out why that process ended: check its log, `dmesg` for the out-of-memory killer or a "
       "GPU fault (Xid), and the scheduler's log. The other ranks cannot continue without it: "
       "restart the job."},
      {"one-thread-per-communicator", HasCause<Cause::kConcurrentUse>, "concurrent_use",
       "NCCL allows one thread at a time on a communicator, and nothing orders the calls of two: they "
       "can run in a different order on each rank, or corrupt the communicator.",
       "Two threads make calls on one communicator. Give each thread a communicator of its own "
       "(new_group()), or make all calls from one thread: a lock keeps them apart, but not in the "
       "same order on all ranks. Look for collectives in background threads, such as an "
       "asynchronous checkpoint."},
      {"same-calls-everywhere", HasCause<Cause::kOperationMismatch>, "operation_mismatch",
       "NCCL matches calls only by their order.",
       "All ranks must make the same calls in the same order on a communicator. Look for calls "
       "inside a branch on the rank or on data, near the first call that differs."},
      {"same-arguments-everywhere", HasCause<Cause::kArgumentMismatch>, "argument_mismatch",
       "NCCL does not compare arguments between ranks.",
       "All ranks must pass the same count, data type, reduction and root. NCCL does not check "
       "them: the call may hang, or end with wrong data. Look for shapes that depend on the rank's "
       "data."},
      {"act-on-the-error", HasCause<Cause::kNcclError>, "nccl_error",
       "NCCL reported an error to one rank. Nothing informs the others, and they wait.",
       "NCCL reported an error on that rank. Read its log with NCCL_DEBUG=WARN, and `dmesg` for "
       "Xid or link errors. After an error the program must abort the communicator on all ranks."},
      {"why-it-left", HasCause<Cause::kRankExited>, "rank_exited",
       "A rank left while the others still wait for it.",
       "The rank left while the others still wait for it. Unless an error ended it, look for the "
       "return or the end of a loop that it took early: a rank without work makes the same calls "
       "with nothing in them. Make all ranks leave at the same step, and put a barrier before the "
       "exit."},
      {"host-gone", HasCause<Cause::kHostLost>, "host_lost",
       "The host, its network or its agent has stopped responding, with all ranks on the host.",
       "The whole host is silent. Check whether it responds at all (console, management "
       "controller), and whether its link or switch is down. Restart the job without the host."},
      {"look-at-who-has-not-joined", RanksHaveNotJoined, "init_incomplete",
       "A communicator is complete when its last rank has joined.",
       "The creation waits for the ranks named here. Their stacks show what they do instead."},
      {"look-at-absent-rank", HasCause<Cause::kMissingRank>, "missing_rank",
       "A rank is alive but has not entered a call that other ranks wait in.",
       "The stack of the absent rank shows what it does instead. Look for work that only this rank "
       "does between two calls (data loading, validation, saving, logging), for a branch on the "
       "rank, and for an exception that the code ignores."},
      {"issue-the-other-end", HasCause<Cause::kUnmatchedP2p>, "unmatched_p2p",
       "NCCL matches the sends and receives of two ranks in the order of issue.",
       "Each send needs a receive of the same size and type on the peer, in the same order. "
       "Compare what the two ranks issue to each other."},
      {"break-the-cycle", HasCause<Cause::kDeadlock>, "deadlock",
       "Each rank in the cycle waits for the next, so none can continue.",
       "Break the cycle at any of its edges: make the calls named here in the same order on all "
       "ranks."},
      {"earlier-work-on-stream", HasCause<Cause::kBlockedBeforeStart>, "blocked_before_start",
       "A call starts on the GPU when all earlier work on its stream has ended.",
       "Earlier work on that GPU does not end: an endless or faulty kernel, a host callback that "
       "blocks, or a wait for an event on another stream. Check the work queued just before."},
      {"look-where-it-stands", HasCause<Cause::kStandstill>, "standstill",
       "No rank moves, and no recorded call waits: the ranks wait in queues, sockets, locks or "
       "libraries whose calls are not recorded.",
       "The stacks show where each rank stands and what it waits for. Begin with the ranks named "
       "here: find out what should have let them go on."},
      {"check-network-and-gpu", StallsAlone, "stalled_in_flight",
       "All ranks have made the call, so the program is not the cause.",
       "All ranks are in the call, so the program is not the cause. Check the network (link "
       "errors, NCCL_DEBUG=INFO for the interfaces in use) and the GPUs (`dmesg` for Xid, "
       "nvidia-smi), the least advanced ranks first."},
      {"end-together", HasCause<Cause::kTeardownHang>, "teardown_hang",
       "Finalizing and destroying a communicator wait for open calls, and can wait for other "
       "ranks.",
       "End the communicators on all ranks at the same point: synchronize the GPU, then call "
       "destroy_process_group() (ncclCommDestroy) on every rank, and not from a destructor or at "
       "exit."},
      {"find-what-slows-it", HasCause<Cause::kStraggler>, "straggler",
       "Every call starts when the last rank enters it, so one slow rank slows the whole job.",
       "Nothing hangs, but all ranks wait for this rank at each call. Compare its GPU clocks and "
       "temperature, its data loading and the load of its host with those of the other ranks."},
  };
  return *kTable;
}

}  // namespace rollcall
