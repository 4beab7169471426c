// The tables behind AdviceFor(): patterns, and what they teach. Each entry has
// a verdict that it fits and one that it must not fit in tests/unit/daemon/diagnosis/advice_test.cc.
#include <algorithm>
#include <initializer_list>
#include <set>

#include "absl/strings/match.h"
#include "daemon/diagnosis/advice.h"

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

bool AnyCulprit(const Verdict& v, bool (*is)(const Culprit&)) {
  return std::any_of(v.culprits.begin(), v.culprits.end(), is);
}

// The culprits are somewhere else than they should be, and live.
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

// Is it `a` on one side and `b` on the other?
bool Meets(const Verdict& v, Op a, Op b) {
  if (!Is(v, Cause::kOperationMismatch)) return false;
  return std::any_of(v.culprits.begin(), v.culprits.end(), [&](const Culprit& culprit) {
    const Op theirs = Canonical(culprit.call.op);
    const Op others = Canonical(v.call.op);
    return (theirs == a && others == b) || (theirs == b && others == a);
  });
}

// As PyTorch makes one on NCCL: an all-reduce of one element.
bool IsBarrier(const CallArgs& call) { return call.op == Op::kAllReduce && call.count == 1; }

bool MeetsBarrier(const Verdict& v) {
  return Is(v, Cause::kOperationMismatch) &&
         (IsBarrier(v.call) || AnyCulprit(v, [](const Culprit& c) { return IsBarrier(c.call); }));
}

bool IsGradientExchange(Op op) {
  return op == Op::kAllReduce || op == Op::kReduceScatter || op == Op::kAllGather;
}

bool Creates(const Verdict& v) { return KindOf(v.call.op) == CallKind::kCreate; }

bool CrossesCommunicators(const Verdict& v) {
  std::set<uint64_t> communicators;
  for (const WaitEdge& edge : v.chain) communicators.insert(edge.communicator);
  return communicators.size() > 1;
}

// What the process of a culprit is doing.

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

// How a culprit ended.

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

// What the ranks called.

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
         v.waiting_ranks.size() < v.culprits.size();
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
         v.culprits.size() + 1 == static_cast<size_t>(v.communicator_size);
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
                     [](const WaitEdge& edge) { return KindOf(edge.call.op) == CallKind::kP2p; });
}

bool PipelineOutOfStep(const Verdict& v) {
  return Is(v, Cause::kUnmatchedP2p) && !HasField(v, "count");
}

bool AbortsAlone(const Verdict& v) {
  return Is(v, Cause::kTeardownHang) && v.call.op == Op::kCommAbort;
}

bool Late(const Verdict& v) { return v.late; }

template <Cause kCause>
bool Of(const Verdict& v) {
  return v.cause == kCause;
}

}  // namespace

const std::vector<AdviceEntry>& KnownMistakes() {
  static const auto* const kTable = new std::vector<AdviceEntry>{
      {"stopped-process", Stopped, "a culprit is in state T or t",
       "A stopped process runs none of its threads: somebody pressed Ctrl-Z, sent SIGSTOP, or "
       "holds it in a debugger; batch systems also suspend jobs this way.",
       "The process is stopped. Let it go on with `kill -CONT PID`, or detach the debugger that "
       "holds it."},
      {"captured-on-some-ranks", CapturesInstead,
       "a culprit's newest call was captured into a CUDA graph, where the others made theirs",
       "A captured call does not happen until the graph is launched, so the others wait for it.",
       "All ranks must capture a call, or none: see what decides on that rank to capture (a batch "
       "size that has no graph yet, a warm-up that was skipped, a flag that is set on one host)."},
      {"debugger-prompt", WaitsForInput, "the culprit's stack reads from a terminal, or is in pdb",
       "A breakpoint or a question on one rank waits for a person who sits at no terminal.",
       "That rank waits for input: remove breakpoint(), pdb or input() from the code, or answer "
       "the prompt."},
      {"storage-wait", WaitsForStorage,
       "the culprit is in state D, waits in the kernel for a file system, or is in fsync",
       "A process in state D waits for a disk or a network file system and can not even be "
       "killed; all ranks then wait for the slowest server.",
       "That rank waits for storage: check the mount, the server and the quota (`dmesg`, `df`, "
       "`nfsstat`), and keep checkpoints and data off it while others wait in collectives."},
      {"loads-gpu-code", LoadsCudaModules, "the culprit's stack loads or looks up GPU code",
       "CUDA loads kernels at their first use, and that may have to wait for kernels that run; an "
       "NCCL kernel that runs waits for this rank.",
       "That rank loads GPU code while NCCL kernels run. Set CUDA_MODULE_LOADING=EAGER, or run "
       "each kernel once on every rank before the first collective."},
      {"gpu-memory-call", ManagesGpuMemory, "the culprit's stack allocates or frees GPU memory",
       "Allocating and freeing GPU or pinned memory can wait until the device is idle, and it "
       "never is while an NCCL kernel on it waits for another rank.",
       "That rank allocates or frees GPU memory while NCCL kernels run. Allocate before the loop, "
       "use a caching or stream-ordered allocator, and empty caches on all ranks at once."},
      {"compiles-alone", Compiles, "the culprit's stack is in a compiler",
       "Kernels are compiled when shapes or code paths are new; when that is so on one rank only, "
       "all others wait, for minutes.",
       "That rank compiles (torch.compile, Triton, NVRTC, XLA). Warm up on all ranks, mark "
       "dynamic shapes as such, share the compiler's cache, or let others wait longer "
       "(--hang-after)."},
      {"file-lock", WaitsForFileLock, "the culprit's stack waits for a file lock",
       "Extension builds and download caches are guarded by lock files; one that a killed process "
       "left behind is waited for for ever.",
       "That rank waits for a lock file (extension build, model cache). Remove a stale lock, give "
       "each node its own cache, and let one rank build while the others wait in a barrier."},
      {"downloads-alone", Downloads, "the culprit's stack is in a network client",
       "A download from a hub or object store on one rank takes as long as the server likes.",
       "That rank talks to a remote server. Download before the job starts, or on one rank per "
       "node and before the communicators are made."},
      {"saves-alone", SavesCheckpoint, "the culprit's stack writes a checkpoint",
       "Writing takes minutes on one rank, and the others have gone on into the next collective.",
       "That rank writes a checkpoint while the others wait. Save asynchronously or sharded, or "
       "raise the timeouts above the time that a save takes."},
      {"data-loader", LoadsData, "the culprit's stack is in a data loader",
       "A worker process died or hangs, the shared memory is full, or a shard is slower or "
       "shorter than the others.",
       "That rank waits for its data loader: look at its worker processes, at /dev/shm, and at "
       "the shard it reads; give the loader a timeout so that it fails loudly."},
      {"mixed-backends", WaitsInAnotherLibrary,
       "the culprit's stack waits in Gloo, MPI, or a key-value store",
       "Two libraries wait for each other: some ranks are in an NCCL collective, this one is in a "
       "barrier or store of another library that needs them.",
       "That rank waits for the others in another library (Gloo, MPI, TCPStore). Give all ranks "
       "the same order of barriers, and no barrier inside a branch on the rank."},
      {"waits-for-its-gpu", WaitsForItsGpu,
       "the culprit has not entered the call and waits for its GPU",
       "Earlier work on that GPU does not end: an endless kernel, a fault, or a wait for an event "
       "that nobody records.",
       "That rank's host waits for its own GPU. Look at the work it queued before (nvidia-smi, "
       "`dmesg` for Xid; CUDA_LAUNCH_BLOCKING=1 shows which kernel)."},
      {"gil-held", WaitsForTheGil,
       "the culprit's threads wait for Python's global lock and nothing moves",
       "A native call that keeps the interpreter's lock stops every Python thread of the process.",
       "Threads of that rank wait for Python's lock: the thread that does not is in a native call "
       "that should have released it."},
      {"killed", KilledHard, "a culprit was killed by signal 9",
       "Nearly always the kernel's out-of-memory killer, a container's memory limit, or the batch "
       "system.",
       "It was killed by SIGKILL: look for the out-of-memory killer in `dmesg` and for the memory "
       "limit of the container or batch system. Loading the model on every rank at once is the "
       "usual reason."},
      {"crashed", Crashed, "a culprit died of a fault or an abort",
       "A segmentation fault, a failed assertion, or a watchdog that aborts its process.",
       "It crashed. Look at the end of its log and at the core dump (`coredumpctl`, `ulimit -c "
       "unlimited` for the next time); an abort is often another library's own timeout."},
      {"raised-an-exception", RaisedAnException, "a culprit ended with an error code",
       "An exception ends one rank; the others cannot know it and wait in the next collective.",
       "Its own error comes first: the last traceback in that rank's log. Let the launcher end "
       "the job when one rank fails (torchrun does), so that nobody waits."},
      {"collective-on-one-rank", OnlyOneCalls, "one rank waits, and all others are absent",
       "A collective under `if rank == 0:`, or inside something that only one rank does: logging a "
       "metric, printing a sharded tensor.",
       "Only one rank makes this call. Move it out of the branch on the rank, or compute the value "
       "without communication."},
      {"buffer-broadcast", BufferBroadcast,
       "a Broadcast meets an AllReduce that is no barrier, or ranks are absent from a Broadcast in "
       "the loop",
       "DistributedDataParallel broadcasts buffers in each forward pass. A rank that validates "
       "alone makes a broadcast that meets the others' gradient all-reduce.",
       "One rank runs forward passes that the others do not (validation on rank 0 only), and its "
       "buffer broadcast meets their gradient all-reduce. Validate on every rank, or on the bare "
       "module (model.module), or build DistributedDataParallel with broadcast_buffers=False."},
      {"rank0-only-checkpoint", Rank0OnlyCheckpoint,
       "in the loop an AllGather meets an AllReduce or a Broadcast, a Broadcast meets a barrier, "
       "or "
       "most are absent from an AllGather",
       "A full state dict is gathered by all ranks; code that asks for it under `if rank == 0:` "
       "leaves the others in a barrier.",
       "Only some ranks take part in gathering the full state dict while the others wait in a "
       "barrier. Call it on every rank and write the file on one, or save a sharded state dict."},
      {"rank0-only-setup", Rank0OnlySetup,
       "the first calls of a communicator differ or are missing",
       "The first collectives verify parameters and share weights. A data set or model made on one "
       "rank, a missed barrier or a launch in the wrong place shows here.",
       "Set-up differs between ranks: something is made on one rank only, or a barrier is missed. "
       "Every rank must reach the barrier, create the data and call launch() at the entry point; "
       "also check that the model has the same parameters and shapes everywhere."},
      {"alltoall-splits", SplitSizesDiffer,
       "a send and its receive, or the AlltoAll of two ranks, have other sizes",
       "Experts get another number of tokens on each rank, so sizes must be told before data; a "
       "size that is computed twice is computed differently.",
       "The two sides disagree on how much is sent. Exchange the split sizes first and use what "
       "was received; for pipelines check micro-batch and sequence length on both stages."},
      {"calls-swapped", CallsSwapped, "the same calls in another order",
       "The order comes from a set or dict, from several threads, or from hooks that fire as "
       "gradients get ready.",
       "The ranks make the same calls in different orders. Iterate in a sorted order, and issue "
       "the calls of one communicator from one thread."},
      {"extra-call", CallTooMany, "the culprits make calls that the others do not",
       "A collective hides in something done on some ranks only: a metric's compute(), logging a "
       "reduced loss, saving, an extra forward pass.",
       "The culprits make a call too many: look for metrics, logging, saving or validation inside "
       "a branch on the rank, at the code line of that call."},
      {"skipped-call", CallSkipped, "the culprits leave out calls that the others make",
       "A branch on data: an empty batch, a loss that is NaN, an early `continue`, a step skipped "
       "by the gradient scaler, an expert without tokens.",
       "The culprits leave out a call: look for a branch on data or loss before it, and let all "
       "ranks decide together (reduce the flag first), or call it with zeros."},
      {"type-differs", TypeDiffers, "the data type differs",
       "Mixed precision is on for some ranks only, or a parameter was converted on one of them.",
       "The data type differs between ranks: use autocast and the same precision on all of them, "
       "and check parameters that one rank loads or converts by itself."},
      {"root-differs", RootDiffers, "the root differs",
       "Frameworks take global ranks where NCCL counts within the communicator; a sub-group's "
       "source is easily given in the wrong count.",
       "The root differs between ranks: check whether the source is meant as a rank in the whole "
       "job or in this group, and that all ranks compute it alike."},
      {"reduction-differs", ReductionDiffers, "the reduction differs",
       "One side sums and divides, the other averages; a hook or option is set on some ranks only.",
       "The reduction differs between ranks: the result is wrong even where nothing hangs. Set "
       "gradient hooks and averaging on all ranks alike."},
      {"uneven-inputs", UnevenInputs,
       "in the loop ranks are absent from, have left, or differ in the count of a gradient "
       "exchange",
       "A sampler without set_epoch(), a last batch that is kept, or samples dropped on one rank "
       "give one rank fewer or smaller steps.",
       "One rank has fewer steps than the others, or a last batch of another size. Use "
       "drop_last=True or pad the data, call the sampler's set_epoch() each epoch, drop no samples "
       "silently on one rank, or wrap the loop in DistributedDataParallel's join()."},
      {"gradients-differ", GradientsDiffer,
       "the count of an AllReduce or ReduceScatter in the loop differs",
       "The ranks have gradients for different parameters: a branch, an expert, or an adapter that "
       "is used on some of them only.",
       "Gradients of different size are reduced: parameters that are used on some ranks only "
       "(branches, experts, adapters). Use find_unused_parameters=True, or make every rank touch "
       "all of them."},
      {"launch-count", NeverLaunched, "nothing is known of a rank that should join",
       "Fewer processes were started than the world size says, one ended before NCCL, or its host "
       "runs no agent.",
       "Nothing was heard of an absent rank: compare the number of processes started with the "
       "world size, look at the launcher's log, and check that each host runs an agent."},
      {"split-on-all-ranks", SplitNotByAll,
       "a split or another child communicator is not made by all",
       "new_group() and split must be called by all ranks of the parent, in the same order, also "
       "by those that will not be members.",
       "Not all ranks came to create this sub-communicator: call new_group() or split on every "
       "rank, in the same order, also where it will not be used."},
      {"init-order", InitOrder, "ranks have not joined a communicator",
       "Ranks load the model at once; one is far behind, dead, or busy with something else.",
       "Not all ranks have joined the communicator: look at what the absent ones are doing. "
       "Stagger "
       "loading of the model, load straight to the device, check that the GPUs are alike, and that "
       "all ranks create their communicators in the same order."},
      {"bootstrap-network", CreationStalls, "all ranks are inside the creation of a communicator",
       "NCCL meets over TCP first. A wrong interface, a firewall between hosts, or an address that "
       "only one side can reach makes it wait.",
       "All ranks came and cannot meet: set NCCL_SOCKET_IFNAME to the interface that all hosts "
       "share, open the firewall between them, and read NCCL_DEBUG=INFO for the addresses in use."},
      {"mpi-goes-on-inside-mpi", MpiCallStays, "stalled_in_flight of a nonblocking call of MPI's",
       "MPI may go on with a nonblocking call only while the rank is inside a call of MPI's.",
       "The rank named here has made the call and does something else: let it come to its "
       "MPI_Wait, "
       "or call MPI_Test now and then while it works; or give MPI a thread of its own "
       "(MPICH_ASYNC_PROGRESS=1)."},
      {"first-call-transport", FirstCallStalls, "the first calls of a communicator do not end",
       "Transports are set up at the first use. GPU-to-GPU access that the hardware does not carry "
       "out (ACS, virtual machines), InfiniBand settings or a small /dev/shm show now.",
       "The first transfer does not get through: try NCCL_P2P_DISABLE=1, then NCCL_SHM_DISABLE=1, "
       "then NCCL_IB_DISABLE=1; the one that helps names the transport. Check ACS and /dev/shm."},
      {"worked-for-long", WorkedForLong, "a call stalls in flight after a thousand that went well",
       "The program and the set-up are right, so something broke: a link flaps, a switch drops, a "
       "GPU has fallen off the bus.",
       "It went well a thousand times, so look for what broke just then: link counters, switch "
       "logs, `dmesg` for Xid and for the network card, on the hosts of this communicator."},
      {"communicators-in-one-order", CommunicatorsInOtherOrders,
       "a cycle over several communicators",
       "Kernels of two communicators wait for each other's place on the GPU when ranks issue them "
       "in different orders.",
       "Issue calls on different communicators in the same order on all ranks, and from one thread "
       "or stream; from NCCL 2.26 on NCCL_LAUNCH_ORDER_IMPLICIT=1 keeps the host's order."},
      {"all-send-first", AllSendFirst, "a cycle of sends and receives",
       "A send may wait until its receive is there. Where every rank sends before it receives, "
       "nobody receives.",
       "Every rank in the ring waits for the next. Put each send and its receive into one group "
       "(batch_isend_irecv, ncclGroupStart), or let even ranks send first and odd ones receive."},
      {"pipeline-out-of-step", PipelineOutOfStep, "a send or receive without its other end",
       "The stages of a pipeline disagree on the schedule: another number of micro-batches, an "
       "early exit, or a wrong peer.",
       "The peer has not issued the other end: check that both stages run the same schedule with "
       "the same number of micro-batches, and that each names the other's rank within the group."},
      {"abort-on-all-ranks", AbortsAlone, "CommAbort does not return",
       "Aborting waits for the device and for threads that are inside other NCCL calls of the "
       "process.",
       "CommAbort waits: call it on all ranks at about the same time, from a thread that holds no "
       "lock the others need, and end the process if it does not return."},
      {"late-rank", Late, "the culprits use the CPU and their stacks change",
       "They are at work on something that takes longer than usual, and may come yet.",
       "The culprit is working, not stuck: validation, saving or compiling on one rank takes its "
       "time. If that is meant, raise --hang-after; else spread the work."},
  };
  return *kTable;
}

const std::vector<AdviceEntry>& GeneralAdvice() {
  static const auto* const kTable = new std::vector<AdviceEntry>{
      {"find-why-it-died", Of<Cause::kRankDied>, "rank_died",
       "A process ended without leaving in good order.",
       "Look for the end of that process: its own log, `dmesg` for the out-of-memory killer or a "
       "GPU fault (Xid), the scheduler's log. The others cannot go on without it: restart the "
       "job."},
      {"one-thread-per-communicator", Of<Cause::kConcurrentUse>, "concurrent_use",
       "NCCL allows one thread at a time on a communicator: two calls at once take an order that "
       "differs from rank to rank, or corrupt it.",
       "Two threads of that rank were inside calls on one communicator. Guard it with a lock, or "
       "give each thread its own communicator; look for collectives in background threads."},
      {"same-calls-everywhere", Of<Cause::kOperationMismatch>, "operation_mismatch",
       "NCCL matches calls by their order alone.",
       "All ranks must make the same calls in the same order on a communicator. Look for calls "
       "inside a branch on the rank or on data, near the first call that differs."},
      {"same-arguments-everywhere", Of<Cause::kArgumentMismatch>, "argument_mismatch",
       "NCCL does not compare arguments between ranks.",
       "All ranks must pass the same count, data type, reduction and root. NCCL does not check it: "
       "the call may hang, or end with wrong data. Look for shapes that depend on the rank's "
       "data."},
      {"act-on-the-error", Of<Cause::kNcclError>, "nccl_error",
       "NCCL told one rank of an error; the others cannot know and wait.",
       "NCCL reported an error on that rank: read its log with NCCL_DEBUG=WARN and `dmesg` for Xid "
       "or link errors. Code that gets an error must abort the communicator on all ranks, not go "
       "on."},
      {"why-it-left", Of<Cause::kRankExited>, "rank_exited",
       "A rank ended its part while the others still count on it.",
       "That rank has ended its part while the others still count on it. Unless an error ended it, "
       "make all ranks leave the loop at the same step, and let them meet in a barrier before they "
       "leave."},
      {"host-gone", Of<Cause::kHostLost>, "host_lost",
       "The host, its network, or its agent has stopped answering, with all ranks on it.",
       "The whole host is silent: see whether it answers at all (console, management controller), "
       "and whether its link or switch is down. Take it out of the job and restart."},
      {"look-at-who-has-not-joined", Of<Cause::kInitIncomplete>, "init_incomplete",
       "A communicator forms when the last of its ranks has come.",
       "The creation waits for the ranks named here: their stacks show what they do instead."},
      {"look-at-absent-rank", Of<Cause::kMissingRank>, "missing_rank",
       "A living rank has not come to a call that others wait in.",
       "The stack of the absent rank shows what it does instead. Look for work that only this rank "
       "does between two calls (data loading, validation, saving, logging), for a branch on the "
       "rank, and for an exception that was swallowed."},
      {"issue-the-other-end", Of<Cause::kUnmatchedP2p>, "unmatched_p2p",
       "Sends and receives of a pair are matched in the order of issue.",
       "Each send needs a receive of the same size and type on the peer, in the same order. "
       "Compare what the two ranks issue to each other."},
      {"break-the-cycle", Of<Cause::kDeadlock>, "deadlock",
       "Each rank in the cycle waits for the next, so none can go on.",
       "Break the cycle at any of its edges: agree on one order of the calls named here on all "
       "ranks."},
      {"earlier-work-on-stream", Of<Cause::kBlockedBeforeStart>, "blocked_before_start",
       "A call begins on the GPU when all that was queued before it on its stream has ended.",
       "Earlier work on that GPU does not end: an endless or faulty kernel, a host callback that "
       "blocks, or a wait for an event on another stream. Look at what was queued just before."},
      {"check-network-and-gpu", Of<Cause::kStalledInFlight>, "stalled_in_flight",
       "All ranks have made the call, so the program is not at fault.",
       "All ranks are in the call, so the program is not at fault: check the network (link errors, "
       "NCCL_DEBUG=INFO for the interfaces in use) and the GPUs (`dmesg` for Xid, nvidia-smi) of "
       "the least advanced ranks first."},
      {"end-together", Of<Cause::kTeardownHang>, "teardown_hang",
       "Finalizing and destroying wait for open calls, and some for the other ranks.",
       "Let all ranks end their communicators at the same point: synchronize the GPU, call "
       "destroy_process_group() (ncclCommDestroy) on every rank, not from a destructor or at "
       "exit."},
      {"find-what-slows-it", Of<Cause::kStraggler>, "straggler",
       "Every call begins when the last rank has come, so one slow rank slows the whole job.",
       "Nothing hangs, but all wait for this rank at each call: compare its GPU clocks and "
       "temperature, its data loading and its neighbours on the host with the others'."},
  };
  return *kTable;
}

}  // namespace rollcall
