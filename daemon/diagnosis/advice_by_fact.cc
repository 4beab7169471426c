// SPDX-License-Identifier: Apache-2.0
// FactAdvice(): for what is known of the culprits' processes.
#include <algorithm>
#include <iterator>

#include "daemon/diagnosis/advice.h"
#include "daemon/diagnosis/advice_patterns.h"
#include "daemon/words/network_words.h"
#include "daemon/words/stops.h"

namespace rollcall {
namespace {

bool Stopped(const Verdict& v) { return IsAnyStopped(v.culprits) || v.standstill.other_is_stopped; }

template <NetworkFault kFault>
bool HoldsUpByNetwork(const Verdict& v) {
  return Is(v, Cause::kStalledInFlight) && v.network.fault == kFault && IsNamedByNetwork(v);
}

bool IdleServer(const Verdict& v) { return v.is_idle && v.start_fault == StartFault::kNone; }

bool IdleWorkers(const Verdict& v) { return v.is_idle && v.start_fault != StartFault::kNone; }

// All ranks wait for the key: a rank that does not would be to blame.
bool NoRankSetsTheKey(const Verdict& v) {
  if (!Is(v, Cause::kMissingRank) || v.communicator_kind != CommKind::kStore) return false;
  return !v.culprits.empty() && std::find(v.waiting_ranks.begin(), v.waiting_ranks.end(),
                                          v.culprits.front().rank) != v.waiting_ranks.end();
}

// The rank that others expect to set the key waits itself.
bool IsInACycleOverAKey(const Verdict& v) {
  return Is(v, Cause::kDeadlock) &&
         std::any_of(v.chain.begin(), v.chain.end(), [](const WaitEdge& edge) {
           return edge.communicator_kind == CommKind::kStore;
         });
}

// The others are in a call of theirs, and the one that sets the key may be among them. What creates
// groups and communicators asks the store, too, inside a call of PyTorch's.
bool WaitsForAKeyAlone(const Verdict& v) {
  return Is(v, Cause::kMissingRank) && v.communicator_kind != CommKind::kStore &&
         CulpritIsIn(v, {"Store::get ", "Store::wait "}) &&
         !CulpritIsIn(v, {"NCCL", "nccl", "gloo", "distributed_c10d."});
}

bool LacksAMaker(const Verdict& v) {
  return NoRankSetsTheKey(v) || IsInACycleOverAKey(v) || WaitsForAKeyAlone(v) ||
         v.standstill.lacks_worker;
}

bool NumberedTwice(const Verdict& v) { return v.is_one_rank; }

bool ExpectsOthers(const Verdict& v) {
  return v.start_fault == StartFault::kOtherSize ||
         (Is(v, Cause::kInitIncomplete) && !v.all_ranks_live &&
          AnyCulprit(v, [](const Culprit& c) { return c.pid == 0; }));
}

bool SizesDiffer(const Verdict& v) { return Is(v, Cause::kInitIncomplete) && HasField(v, "size"); }

bool CapturesInstead(const Verdict& v) { return IsAbsence(v) && v.captured; }

bool HasDied(const Verdict& v) {
  return Is(v, Cause::kRankDied) || v.standstill.shape == StandShape::kEnded;
}

bool KilledHard(const Verdict& v) {
  return HasDied(v) &&
         AnyCulprit(v, [](const Culprit& c) { return c.exit_signal == 9 || c.exit_code == 137; });
}

bool Crashed(const Verdict& v) {
  return HasDied(v) && AnyCulprit(v, [](const Culprit& c) {
           constexpr int kFaults[] = {4, 6, 7, 8, 11};
           return std::any_of(std::begin(kFaults), std::end(kFaults), [&](int signal) {
             return c.exit_signal == signal || c.exit_code == 128 + signal;
           });
         });
}

bool RaisedAnException(const Verdict& v) {
  return (Is(v, Cause::kRankDied) || Is(v, Cause::kRankExited)) &&
         AnyCulprit(v, [](const Culprit& c) {
           return (!c.error.empty() && !c.exits) ||
                  (c.exit_signal == 0 && c.exit_code > 0 && c.exit_code < 128);
         });
}

// No thread of its process ends these waits.
bool WaitsForNoThread(const Verdict& v) {
  constexpr waits::Kind kKinds[] = {waits::kTerminal, waits::kStorage, waits::kFileLock,
                                    waits::kOtherLibrary};
  return PlacesAreKnown(v) && std::any_of(std::begin(kKinds), std::end(kKinds),
                                          [&v](waits::Kind kind) { return CulpritIsIn(v, kind); });
}

bool LostAThread(const Verdict& v) {
  if (!v.standstill.lacks_thread.empty()) return true;
  return IsAbsence(v) && !WaitsForNoThread(v) &&
         AnyCulprit(v, [](const Culprit& c) { return !c.thread_error.empty(); });
}

}  // namespace

const std::vector<AdviceEntry>& FactAdvice() {
  static const auto* const kTable = new std::vector<AdviceEntry>{
      {"stopped-process", Stopped,
       "a culprit, or the child for which it waits, is in state T or t, or its control group is frozen",
       "A stopped process runs none of its threads. A person pressed Ctrl-Z, sent SIGSTOP or "
       "attached a debugger, or the batch system or container runtime suspended or froze the job.",
       "The process is stopped. Resume it with `kill -CONT PID`, detach the debugger, or thaw its "
       "control group (cgroup.freeze, `docker unpause`)."},
      {"gpu-does-not-produce", HoldsUpByNetwork<NetworkFault::kOwnGpu>,
       "the culprit's transfers over the network wait for its own GPU, and for no other rank",
       "A send that waits for its own GPU, in a rank whose receives do not wait, shows that the "
       "kernel on that GPU does not run on: the GPU has a fault, or other work occupies it.",
       "The GPU of the culprit does not run its part of the call. On its host: `dmesg -T | grep -i "
       "xid`, `nvidia-smi -q -d PERFORMANCE,ECC`, and `nvidia-smi --query-compute-apps=pid,name "
       "--format=csv` for another process on this GPU. Look for a kernel of the program that does "
       "not end on another stream."},
      {"gpu-does-not-take", HoldsUpByNetwork<NetworkFault::kPeerGpu>,
       "the culprit has received data over the network, and its GPU does not read it",
       "The kernel that reads the data does not run on: the GPU has a fault, or other work "
       "occupies it.",
       "The GPU of the culprit does not read the received data. On its host: `dmesg -T | grep -i xid`, "
       "`nvidia-smi -q -d PERFORMANCE,ECC`, and `nvidia-smi --query-compute-apps=pid,name "
       "--format=csv` for another process on this GPU. Look for a kernel of the program that does "
       "not end on another stream."},
      {"link-does-not-carry", HoldsUpByNetwork<NetworkFault::kLink>,
       "the network has what the culprit has sent, and the peer waits for it",
       "A link that is down, a NIC or switch that drops packets, a wrong route or a firewall. NCCL "
       "repeats a transfer for long before it reports an error.",
       "Look at the link between the two ranks named here, on both hosts: `ibstat` or `ip -s link`, "
       "`ethtool -S DEVICE` and `rdma statistic show` twice, `dmesg -T | grep -i link`; then the "
       "counters of both switch ports. Test the path itself with `ib_write_bw` or `iperf3` between "
       "these interfaces. Restart the job without the host whose counters rise."},
      {"proxy-thread-stands", HoldsUpByNetwork<NetworkFault::kProxy>,
       "the culprit has no transfer under way that its peer waits for",
       "One thread of NCCL in each process posts and completes the transfers. If it waits, ends or "
       "gets no CPU, no transfer of that rank moves.",
       "Look at the thread of NCCL that serves the transfers (\"NCCL Progress\", where the job has "
       "NCCL_SET_THREAD_NAME=1) in the stacks of the culprit, and at its state: `ps -L -o "
       "tid,stat,wchan:32,pcpu,comm -p PID`. If it does not run, look at CPU limits and pinning "
       "(`taskset -cp PID`), and at the network plugin it waits in."},
      {"idle-server", IdleServer, "a culprit waits in the accept loop of a server",
       "One rank takes requests and broadcasts the work, and the others wait in that call until the "
       "next request. A server without requests is idle.",
       "The rank waits for requests. If none is due, nothing hangs, and Rollcall does not act. If one "
       "should be at work, look for it in the server's log: it has not reached its handler."},
      {"idle-workers", IdleWorkers, "all ranks wait for keys of a store before their first call",
       "The ranks take work from a controller that is not a rank, and wait for it in PyTorch's "
       "store. Workers without work are idle.",
       "All ranks wait for a key that no rank sets. If no work is due, nothing hangs, and Rollcall "
       "does not act. If some is due, look at the process that hands it out, and at the name of the "
       "key."},
      {"nobody-makes-it", LacksAMaker,
       "all ranks wait for a key of a store, or ranks wait for each other and some of them for such a "
       "key, or a culprit waits for one while the others are in a call, or a culprit waits for a result of Ray while no worker that it has called is at work",
       "What no process makes does not come: a key that is set under another name, the result of a "
       "task that asks for a resource that no node has.",
       "No process makes what is waited for. Compare the name of the key with the names that are "
       "set, and let the rank that sets it do so before it waits for the others. With Ray, compare "
       "the resources that the task asks for with those of the nodes: `ray status` lists the "
       "requests that no node meets."},
      {"ranks-numbered-twice", NumberedTwice, "two processes join a communicator with one rank",
       "Each process computes its rank from the number of its host and its number there. If the "
       "hosts got different counts, two processes have one rank and no process has another.",
       "Number each process once: let the launcher do it (torchrun, srun, mpirun), or check how "
       "the program computes RANK from the host's number, the processes of each host and the local "
       "rank, and that each host got the same counts."},
      {"launch-count", ExpectsOthers,
       "no process of a rank that should join is known, or a rank expects another number of ranks "
       "than the others",
       "The launcher started fewer processes than the world size, a process ended before its first "
       "NCCL call, or its host runs no agent.",
       "A rank that others expect has no process that an agent reports. Compare the number of "
       "started processes with the world size that each of them got (WORLD_SIZE), read the "
       "launcher's log, and check that each host runs an agent."},
      {"sizes-of-the-world-differ", SizesDiffer, "ranks pass different sizes for one communicator",
       "One process got another number of ranks: an old WORLD_SIZE, another number of hosts or "
       "GPUs, or a process of an earlier start.",
       "The ranks disagree on how many they are. Compare WORLD_SIZE, --nnodes and --nproc-per-node of "
       "the culprit with those of the others, and look for a process of an earlier start."},
      {"captured-on-some-ranks", CapturesInstead,
       "the others made the call, but a culprit captured it into a CUDA graph",
       "A captured call runs only when the program launches the graph, and the others wait for it.",
       "All ranks must capture a call, or none. Check why that rank captures: a batch size without "
       "a graph, a skipped warm-up, or a flag that is set on one host only."},
      {"killed", KilledHard, "a culprit was killed by signal 9",
       "The sender is nearly always the kernel's out-of-memory killer, a container's memory limit "
       "or the batch system.",
       "SIGKILL ended the process. Look for the out-of-memory killer in `dmesg`, and check the "
       "memory limit of the container or batch system. The usual reason: every rank loads the "
       "model at the same time."},
      {"crashed", Crashed, "a culprit died of a fault or an abort",
       "The reason is a segmentation fault, a failed assertion, or a watchdog that aborts its "
       "process.",
       "The process crashed. Check the end of its log and the core dump (`coredumpctl`; `ulimit -c "
       "unlimited` for the next run). An abort is often the timeout of another library."},
      {"raised-an-exception", RaisedAnException, "a culprit ended with an error code",
       "An exception ends one rank. Nothing informs the others, and they wait in the next "
       "collective.",
       "Read the last traceback in that rank's log first. Let the launcher end the job when one "
       "rank fails (torchrun does), so that no rank waits."},
      {"thread-failed", LostAThread,
       "an exception ended a thread of a culprit within the ten minutes before the wait, or since, and "
       "the culprit waits for no terminal, file or other library; or it waits for its own threads, and "
       "lacks one that the others have",
       "Python prints the exception of a thread and goes on. The main thread waits for what that "
       "thread owes it: the next batch of a queue, an event, a lock.",
       "A thread of that rank has ended, by an exception as a rule, and its main thread lives on "
       "without it. Read the traceback in that rank's log, and mend what raised it first. Let the "
       "thread hand its exception on (concurrent.futures, or the queue that it fills), or end the "
       "process in threading.excepthook, so that the other ranks do not wait for it."},
  };
  return *kTable;
}

}  // namespace rollcall
