// SPDX-License-Identifier: Apache-2.0
// The tables of AdviceFor(): patterns and their advice. For each entry
// tests/unit/daemon/diagnosis/advice_test.cc has a verdict that fits and one that must not fit.
#include <algorithm>
#include <initializer_list>
#include <set>

#include "absl/strings/match.h"
#include "daemon/diagnosis/advice.h"

namespace rollcall {
namespace {

// Calls before this position belong to the set-up: frameworks verify parameter shapes,
// broadcast the first weights and enter a barrier.
constexpr uint64_t kSetupCalls = 3;
// From this position on the job is in its training loop, and calls repeat in each step.
constexpr uint64_t kLoopCalls = 5;

bool Is(const Verdict& v, Cause cause) { return v.cause == cause; }

bool HasField(const Verdict& v, const char* field) {
  return std::find(v.mismatched_fields.begin(), v.mismatched_fields.end(), field) !=
         v.mismatched_fields.end();
}

bool AnyCulprit(const Verdict& v, bool (*is)(const Culprit&)) {
  return std::any_of(v.culprits.begin(), v.culprits.end(), is);
}

// The culprits are alive but not inside the call that the others wait in.
bool IsAbsence(const Verdict& v) {
  return Is(v, Cause::kMissingRank) || Is(v, Cause::kInitIncomplete) ||
         Is(v, Cause::kUnmatchedP2p) || Is(v, Cause::kTeardownHang) ||
         Is(v, Cause::kBlockedBeforeStart);
}

bool CapturesInstead(const Verdict& v) { return IsAbsence(v) && v.captured; }

bool OnStack(const Verdict& v, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return absl::StrContains(v.stack_words, word); });
}

bool AbsentIsIn(const Verdict& v, std::initializer_list<const char*> words) {
  return IsAbsence(v) && OnStack(v, words);
}

// True if one side calls `a` and the other side calls `b`.
bool Meets(const Verdict& v, Op a, Op b) {
  if (!Is(v, Cause::kOperationMismatch)) return false;
  return std::any_of(v.culprits.begin(), v.culprits.end(), [&](const Culprit& culprit) {
    const Op theirs = Canonical(culprit.call.op);
    const Op others = Canonical(v.call.op);
    return (theirs == a && others == b) || (theirs == b && others == a);
  });
}

// PyTorch implements a barrier on NCCL as an all-reduce of one element.
bool IsBarrier(const CallArgs& call) { return call.op == Op::kAllReduce && call.count == 1; }

bool MeetsBarrier(const Verdict& v) {
  return Is(v, Cause::kOperationMismatch) &&
         (IsBarrier(v.call) || AnyCulprit(v, [](const Culprit& c) { return IsBarrier(c.call); }));
}

bool IsGradientExchange(Op op) {
  return op == Op::kAllReduce || op == Op::kReduceScatter || op == Op::kAllGather;
}

bool Creates(const Verdict& v) { return OpKind(v.call.op) == CallKind::kCreate; }

bool CrossesCommunicators(const Verdict& v) {
  std::set<uint64_t> communicators;
  for (const WaitEdge& edge : v.chain) communicators.insert(edge.communicator);
  return communicators.size() > 1;
}

// Patterns of the activity of a culprit's process.

bool Stopped(const Verdict& v) {
  return AnyCulprit(v, [](const Culprit& c) { return c.state == 'T' || c.state == 't'; });
}

bool WaitsForInput(const Verdict& v) {
  return AbsentIsIn(v, {"PyOS_Readline", "PyOS_StdioReadline", "rl_callback", "builtin_input",
                        "builtin_breakpoint", "breakpointhook", "set_trace", "cmdloop"});
}

bool WaitsForStorage(const Verdict& v) {
  if (!IsAbsence(v)) return false;
  const bool channel = AnyCulprit(v, [](const Culprit& c) {
    for (const char* word : {"nfs", "rpc_wait", "io_schedule", "lustre", "cl_sync", "ceph", "fuse",
                             "wait_on_page", "folio_wait", "jbd2"}) {
      if (absl::StrContains(c.wait_channel, word)) return true;
    }
    return c.state == 'D';
  });
  return channel || AbsentIsIn(v, {"fsync", "fdatasync", "msync"});
}

bool SavesCheckpoint(const Verdict& v) {
  return AbsentIsIn(v, {"torch_save", "save_checkpoint", "PyTorchStreamWriter", "mz_zip_writer",
                        "FileSystemWriter", "async_save", "save_pretrained"});
}

bool LoadsData(const Verdict& v) {
  return AbsentIsIn(v,
                    {"_next_data", "_try_get_data", "_get_data", "DataLoader", "IterableDataset"});
}

bool Compiles(const Verdict& v) {
  return AbsentIsIn(v, {"nvrtcCompile", "ptxas", "llvm::", "make_cubin", "make_ttir", "compile_fx",
                        "convert_frame", "xla::Compiler", "jit_compile"});
}

bool LoadsCudaModules(const Verdict& v) {
  return AbsentIsIn(v, {"cuModuleLoad", "cuLibraryLoad", "cuModuleGetFunction",
                        "cuLibraryGetKernel", "cuModuleUnload"});
}

bool ManagesGpuMemory(const Verdict& v) {
  return AbsentIsIn(
      v, {"cudaMalloc", "cudaFree", "cuMemAlloc", "cuMemFree", "cudaHostAlloc", "cuMemHostAlloc",
          "cudaHostRegister", "cudaFreeHost", "release_cached_blocks", "emptyCache"});
}

bool WaitsForItsGpu(const Verdict& v) {
  return Is(v, Cause::kMissingRank) &&
         OnStack(v, {"cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize",
                     "cuCtxSynchronize", "cuStreamSynchronize", "cuEventSynchronize"});
}

bool WaitsInAnotherLibrary(const Verdict& v) {
  return AbsentIsIn(v, {"gloo::barrier", "gloo::all", "gloo::broadcast", "UnboundBuffer::wait",
                        "TCPStore::wait", "TCPStore::doWait", "FileStore::wait", "MPI_",
                        "monitoredBarrier", "store_based_barrier"});
}

bool WaitsForFileLock(const Verdict& v) {
  return AbsentIsIn(
      v, {"FileBaton", "file_baton", "FileLock", "filelock", "flock", "lockf", "fcntl_setlk"});
}

bool Downloads(const Verdict& v) {
  return AbsentIsIn(v, {"SSL_read", "SSL_connect", "hf_hub_download", "snapshot_download",
                        "getaddrinfo", "urlopen", "botocore"});
}

bool WaitsForTheGil(const Verdict& v) {
  return !v.late && AbsentIsIn(v, {"take_gil", "_PyThreadState_Attach"});
}

// Patterns of a culprit's end.

bool KilledHard(const Verdict& v) {
  return Is(v, Cause::kRankDied) &&
         AnyCulprit(v, [](const Culprit& c) { return c.exit_signal == 9 || c.exit_code == 137; });
}

bool Crashed(const Verdict& v) {
  return Is(v, Cause::kRankDied) && AnyCulprit(v, [](const Culprit& c) {
           constexpr int kFaults[] = {4, 6, 7, 8, 11};
           return std::any_of(std::begin(kFaults), std::end(kFaults), [&](int signal) {
             return c.exit_signal == signal || c.exit_code == 128 + signal;
           });
         });
}

bool RaisedAnException(const Verdict& v) {
  return (Is(v, Cause::kRankDied) || Is(v, Cause::kRankExited)) &&
         AnyCulprit(v, [](const Culprit& c) {
           return !c.error.empty() || (c.exit_signal == 0 && c.exit_code > 0 && c.exit_code < 128);
         });
}

// Patterns of calls.

bool BufferBroadcast(const Verdict& v) {
  if (Meets(v, Op::kBroadcast, Op::kAllReduce)) return !MeetsBarrier(v);
  return Is(v, Cause::kMissingRank) && v.position >= kLoopCalls &&
         Canonical(v.call.op) == Op::kBroadcast;
}

bool Rank0OnlyCheckpoint(const Verdict& v) {
  if (v.position >= kSetupCalls &&
      (Meets(v, Op::kAllGather, Op::kAllReduce) || Meets(v, Op::kAllGather, Op::kBroadcast) ||
       (Meets(v, Op::kBroadcast, Op::kAllReduce) && MeetsBarrier(v)))) {
    return true;
  }
  return Is(v, Cause::kMissingRank) && v.call.op == Op::kAllGather &&
         v.waiting_ranks.size() < CountCulprits(v.culprits);
}

bool IsBeforeNccl(const Verdict& v) {
  return Is(v, Cause::kInitIncomplete) && v.communicator == 0 && v.call.op == Op::kNone;
}

bool Rank0OnlySetup(const Verdict& v) {
  if (IsBeforeNccl(v)) return true;
  if (v.position >= kSetupCalls || Creates(v)) return false;
  return Is(v, Cause::kMissingRank) || Is(v, Cause::kRankExited) || IsContradiction(v.cause);
}

bool UnevenInputs(const Verdict& v) {
  if (Is(v, Cause::kRankExited)) {
    return v.position >= 1 && IsGradientExchange(v.call.op) && !RaisedAnException(v);
  }
  if (v.position < kLoopCalls) return false;
  if (Is(v, Cause::kMissingRank)) return IsGradientExchange(v.call.op);
  return Is(v, Cause::kArgumentMismatch) && HasField(v, "count") && IsGradientExchange(v.call.op);
}

bool InitOrder(const Verdict& v) {
  return Is(v, Cause::kInitIncomplete) || (Creates(v) && !Is(v, Cause::kStalledInFlight));
}

bool MakesChild(Op op) { return op == Op::kCommSplit || op == Op::kCommShrink; }

bool SplitNotByAll(const Verdict& v) {
  return Is(v, Cause::kInitIncomplete) && v.call.op != Op::kNone && MakesChild(v.call.op) &&
         !v.culprits.empty() && AnyCulprit(v, [](const Culprit& c) { return c.process >= 0; });
}

bool NeverLaunched(const Verdict& v) {
  return Is(v, Cause::kInitIncomplete) &&
         AnyCulprit(v, [](const Culprit& c) { return c.pid == 0; });
}

bool CreationStalls(const Verdict& v) { return Is(v, Cause::kStalledInFlight) && Creates(v); }

bool IsMpi(const Verdict& v) {
  const char* name = OpName(v.call.op);
  return name != nullptr && absl::StartsWith(name, "MPI_");
}

bool FirstCallStalls(const Verdict& v) {
  return Is(v, Cause::kStalledInFlight) && !Creates(v) && !IsMpi(v) && v.position < kSetupCalls;
}

bool MpiCallStays(const Verdict& v) {
  return Is(v, Cause::kStalledInFlight) && ReturnsEarly(v.call.op) && !v.culprits.empty();
}

bool WorkedForLong(const Verdict& v) {
  return Is(v, Cause::kStalledInFlight) && v.position >= 1000;
}

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
  return IsContradiction(v.cause) && v.divergence == DivergenceKind::kSkipped;
}

bool TypeDiffers(const Verdict& v) {
  return Is(v, Cause::kArgumentMismatch) && HasField(v, "dtype");
}

bool RootDiffers(const Verdict& v) {
  return Is(v, Cause::kArgumentMismatch) && HasField(v, "root");
}

bool ReductionDiffers(const Verdict& v) {
  return Is(v, Cause::kArgumentMismatch) && HasField(v, "reduction");
}

bool SplitSizesDiffer(const Verdict& v) {
  if (Is(v, Cause::kUnmatchedP2p)) return HasField(v, "count");
  return Is(v, Cause::kArgumentMismatch) && HasField(v, "count") && v.call.op == Op::kAlltoAll;
}

bool GradientsDiffer(const Verdict& v) {
  const bool reduces = v.call.op == Op::kAllReduce || v.call.op == Op::kReduceScatter;
  return Is(v, Cause::kArgumentMismatch) && HasField(v, "count") && reduces &&
         v.position >= kSetupCalls;
}

bool CommunicatorsInOtherOrders(const Verdict& v) {
  return Is(v, Cause::kDeadlock) && CrossesCommunicators(v);
}

bool AllSendFirst(const Verdict& v) {
  return Is(v, Cause::kDeadlock) && !v.chain.empty() &&
         std::all_of(v.chain.begin(), v.chain.end(),
                     [](const WaitEdge& edge) { return OpKind(edge.call.op) == CallKind::kP2p; });
}

bool PipelineOutOfStep(const Verdict& v) {
  return Is(v, Cause::kUnmatchedP2p) && !HasField(v, "count");
}

bool AbortsAlone(const Verdict& v) {
  return Is(v, Cause::kTeardownHang) && v.call.op == Op::kCommAbort;
}

bool Late(const Verdict& v) { return v.late; }

template <Cause kCause>
bool HasCause(const Verdict& v) {
  return v.cause == kCause;
}

}  // namespace

const std::vector<AdviceEntry>& KnownMistakes() {
  static const auto* const kTable = new std::vector<AdviceEntry>{
      {"stopped-process", Stopped, "a culprit is in state T or t",
       "A stopped process runs none of its threads. A person pressed Ctrl-Z, sent SIGSTOP or "
       "attached a debugger, or the batch system suspended the job.",
       "The process is stopped. Resume it with `kill -CONT PID`, or detach the debugger."},
      {"captured-on-some-ranks", CapturesInstead,
       "the others made the call, but a culprit captured it into a CUDA graph",
       "A captured call runs only when the program launches the graph, and the others wait for it.",
       "All ranks must capture a call, or none. Check why that rank captures: a batch size without "
       "a graph, a skipped warm-up, or a flag that is set on one host only."},
      {"debugger-prompt", WaitsForInput, "the culprit's stack reads from a terminal or is in pdb",
       "A breakpoint or a prompt on one rank waits for input, and no person is at its terminal.",
       "That rank waits for input. Remove breakpoint(), pdb or input() from the code, or answer "
       "the prompt."},
      {"storage-wait", WaitsForStorage,
       "the culprit is in state D, waits in the kernel for a file system, or is in fsync",
       "A process in state D waits for a disk or a network file system, and no signal can end it. "
       "All ranks then wait for the slowest server.",
       "That rank waits for storage. Check the mount, the server and the quota (`dmesg`, `df`, "
       "`nfsstat`). Do not read or write there while other ranks wait in collectives."},
      {"loads-gpu-code", LoadsCudaModules, "the culprit's stack loads or looks up GPU code",
       "CUDA loads a kernel at its first use. Loading can wait for running kernels, and a running "
       "NCCL kernel waits for this rank.",
       "That rank loads GPU code while NCCL kernels run. Set CUDA_MODULE_LOADING=EAGER, or run "
       "each kernel once on every rank before the first collective."},
      {"gpu-memory-call", ManagesGpuMemory, "the culprit's stack allocates or frees GPU memory",
       "Allocating and freeing GPU or pinned memory can wait until the device is idle. The device "
       "stays busy while an NCCL kernel on it waits for another rank.",
       "That rank allocates or frees GPU memory while NCCL kernels run. Allocate before the loop, "
       "use a caching or stream-ordered allocator, and empty caches on all ranks at once."},
      {"compiles-alone", Compiles, "the culprit's stack is in a compiler",
       "A new shape or code path makes the framework compile kernels. When only one rank compiles, "
       "all others wait, for minutes.",
       "That rank compiles (torch.compile, Triton, NVRTC, XLA). Warm up on all ranks, mark dynamic "
       "shapes, share the compiler's cache, or raise --hang-after."},
      {"file-lock", WaitsForFileLock, "the culprit's stack waits for a file lock",
       "Lock files guard extension builds and download caches. A killed process can leave its lock "
       "file behind, and the next process then waits for ever.",
       "That rank waits for a lock file (extension build, model cache). Remove a stale lock, give "
       "each node its own cache, and let one rank build while the others wait in a barrier."},
      {"downloads-alone", Downloads, "the culprit's stack is in a network client",
       "The server decides how long a download from a hub or object store takes.",
       "That rank talks to a remote server. Download before the job starts, or on one rank per "
       "node before the program creates communicators."},
      {"saves-alone", SavesCheckpoint, "the culprit's stack writes a checkpoint",
       "One rank writes for minutes, and the others are already in the next collective.",
       "That rank writes a checkpoint while the others wait. Save asynchronously or sharded, or "
       "raise the timeouts above the time that a save takes."},
      {"data-loader", LoadsData, "the culprit's stack is in a data loader",
       "A worker process died or hangs, the shared memory is full, or one shard is slower or "
       "shorter than the others.",
       "That rank waits for its data loader. Check its worker processes, /dev/shm and the shard it "
       "reads. Give the loader a timeout, so that it reports the failure."},
      {"mixed-backends", WaitsInAnotherLibrary,
       "the culprit's stack waits in Gloo, MPI, or a key-value store",
       "Two libraries wait for each other: some ranks are in an NCCL collective, and this rank is "
       "in a barrier or store of another library that needs them.",
       "That rank waits for the others in another library (Gloo, MPI, TCPStore). Give all ranks "
       "the same order of barriers, and put no barrier inside a branch on the rank."},
      {"waits-for-its-gpu", WaitsForItsGpu,
       "the culprit has not entered the call and waits for its GPU",
       "Earlier work on that GPU does not end: an endless kernel, a fault, or a wait for an event "
       "that no stream records.",
       "That rank waits for its own GPU. Check the work that it queued earlier (nvidia-smi, "
       "`dmesg` for Xid; CUDA_LAUNCH_BLOCKING=1 shows the kernel)."},
      {"gil-held", WaitsForTheGil,
       "the culprit's threads wait for Python's global lock and nothing moves",
       "A native call that holds the interpreter's lock stops every Python thread of the process.",
       "Threads of that rank wait for Python's lock. Look for the thread that does not wait for "
       "it: its native call should have released the lock."},
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
      {"collective-on-one-rank", OnlyOneCalls, "one rank waits, and all others are absent",
       "The collective is under `if rank == 0:`, or inside work that only one rank does: logging a "
       "metric, printing a sharded tensor.",
       "Only one rank makes this call. Move the call out of the branch on the rank, or compute the "
       "value without communication."},
      {"buffer-broadcast", BufferBroadcast,
       "a Broadcast meets an AllReduce that is no barrier, or ranks are absent from a Broadcast in "
       "the training loop",
       "DistributedDataParallel broadcasts buffers in each forward pass. A rank that validates "
       "alone makes a broadcast that meets the others' gradient all-reduce.",
       "One rank runs forward passes that the others do not (validation on rank 0 only), and its "
       "buffer broadcast meets their gradient all-reduce. Validate on every rank, or on the bare "
       "module (model.module), or build DistributedDataParallel with broadcast_buffers=False."},
      {"rank0-only-checkpoint", Rank0OnlyCheckpoint,
       "in the training loop an AllGather meets an AllReduce or a Broadcast, a Broadcast meets a "
       "barrier, or most ranks are absent from an AllGather",
       "All ranks must take part to gather a full state dict. Code that asks for it under `if rank "
       "== 0:` leaves the others in a barrier.",
       "Only some ranks take part in gathering the full state dict while the others wait in a "
       "barrier. Gather on every rank and write the file on one, or save a sharded state dict."},
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
       "branch on the rank, at the code line of that call."},
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
       "in the training loop ranks are absent from a gradient exchange, have left before it, or "
       "pass different counts",
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
      {"launch-count", NeverLaunched, "no process of a rank that should join is known",
       "The launcher started fewer processes than the world size, a process ended before its first "
       "NCCL call, or its host runs no agent.",
       "No agent reports a process of an absent rank. Compare the number of started processes with "
       "the world size, read the launcher's log, and check that each host runs an agent."},
      {"split-on-all-ranks", SplitNotByAll,
       "some ranks do not create a split or another child communicator",
       "All ranks of the parent must call new_group() and split in the same order, also those that "
       "will not be members.",
       "Not all ranks create this sub-communicator. Call new_group() or split on every rank, in "
       "the same order, also on ranks that will not use it."},
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
      {"mpi-goes-on-inside-mpi", MpiCallStays, "stalled_in_flight of a nonblocking MPI call",
       "MPI may progress a nonblocking call only while the rank is inside an MPI call.",
       "The rank named here has made the call and does other work. Let it reach its MPI_Wait "
       "sooner, call MPI_Test now and then while it works, or give MPI a thread of its own "
       "(MPICH_ASYNC_PROGRESS=1)."},
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
       "a cycle over several communicators",
       "When ranks issue calls on two communicators in different orders, each kernel occupies the "
       "GPU and waits for the other kernel.",
       "Issue calls on different communicators in the same order on all ranks, and from one thread "
       "or stream. From NCCL 2.26 on, NCCL_LAUNCH_ORDER_IMPLICIT=1 keeps the order of the host."},
      {"all-send-first", AllSendFirst, "a cycle of sends and receives",
       "A send may wait for its receive. If every rank sends before it receives, no rank receives.",
       "Every rank in the ring waits for the next. Put each send and its receive into one group "
       "(batch_isend_irecv, ncclGroupStart), or let even ranks send first and odd ones receive."},
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
      {"late-rank", Late, "the culprits use the CPU and their stacks change",
       "The culprits do work that takes longer than usual, and may still enter the call.",
       "The culprit works and is not stuck: one rank alone validates, saves or compiles. If this "
       "is intended, raise --hang-after; otherwise spread the work over the ranks."},
  };
  return *kTable;
}

const std::vector<AdviceEntry>& GeneralAdvice() {
  static const auto* const kTable = new std::vector<AdviceEntry>{
      {"find-why-it-died", HasCause<Cause::kRankDied>, "rank_died",
       "A process died: a signal or an error code ended it, not its own exit.",
       "Find out why that process ended: check its log, `dmesg` for the out-of-memory killer or a "
       "GPU fault (Xid), and the scheduler's log. The other ranks cannot continue without it: "
       "restart the job."},
      {"one-thread-per-communicator", HasCause<Cause::kConcurrentUse>, "concurrent_use",
       "NCCL allows one thread at a time on a communicator. Two simultaneous calls can run in a "
       "different order on each rank, or corrupt the communicator.",
       "Two threads of that rank were inside calls on one communicator. Guard the communicator "
       "with a lock, or give each thread its own. Look for collectives in background threads."},
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
       "That rank left while the others still wait for it. Unless an error ended it, make all "
       "ranks leave the loop at the same step, and put a barrier before the exit."},
      {"host-gone", HasCause<Cause::kHostLost>, "host_lost",
       "The host, its network or its agent has stopped responding, with all ranks on the host.",
       "The whole host is silent. Check whether it responds at all (console, management "
       "controller), and whether its link or switch is down. Restart the job without the host."},
      {"look-at-who-has-not-joined", HasCause<Cause::kInitIncomplete>, "init_incomplete",
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
      {"check-network-and-gpu", HasCause<Cause::kStalledInFlight>, "stalled_in_flight",
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
