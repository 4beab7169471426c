// SPDX-License-Identifier: Apache-2.0
// StackAdvice(): for what the culprits do, as the stacks of their own threads show it.
#include <algorithm>

#include "absl/strings/match.h"
#include "daemon/diagnosis/advice.h"
#include "daemon/diagnosis/advice_departures.h"
#include "daemon/diagnosis/advice_patterns.h"

namespace rollcall {
namespace {

// The kernel's name for a wait shows a terminal where a stripped interpreter hides its functions. A
// socket waits in wait_woken(), too, but few programs read() one.
bool ReadsATerminal(const Verdict& v) {
  return AnyCulprit(v, [](const Culprit& c) { return c.wait_channel == "n_tty_read"; }) ||
         (AnyCulprit(v, [](const Culprit& c) { return c.wait_channel == "wait_woken"; }) &&
          CulpritIsIn(v, {" read ", "__libc_read "}));
}

// Connections of multiprocessing read() from sockets, too.
bool WaitsForInput(const Verdict& v) {
  if (CulpritIsIn(v, {"_ConnectionBase."})) return false;
  if (IsAbsence(v) && ReadsATerminal(v)) return true;
  return AbsentIsIn(v, waits::kTerminal);
}

bool WaitsForStorage(const Verdict& v) {
  if (!IsAbsence(v)) return false;
  const bool channel = AnyCulprit(v, [](const Culprit& c) {
    return c.state == 'D' || HasWait(c.wait_channel, waits::kStorageInKernel);
  });
  return channel || AbsentIsIn(v, waits::kStorage);
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

bool IsFileLock(StandKind kind) {
  return kind == StandKind::kFileLock || kind == StandKind::kDatabase;
}

// Of a ring of locks, the order is more telling.
bool WaitsForFileLock(const Verdict& v) {
  if (v.standstill.shape == StandShape::kRing) return false;
  return IsFileLock(v.standstill.in) || IsFileLock(v.standstill.others_in) ||
         AbsentIsIn(v, waits::kFileLock);
}

bool LoadsData(const Verdict& v) {
  return AbsentIsIn(v,
                    {"_next_data", "_try_get_data", "_get_data", "DataLoader", "IterableDataset"});
}

bool SavesCheckpoint(const Verdict& v) {
  return AbsentIsIn(v, {"torch_save", "save_checkpoint", "PyTorchStreamWriter", "mz_zip_writer",
                        "FileSystemWriter", "async_save", "save_pretrained"});
}

bool WaitsForTheGil(const Verdict& v) { return !v.late && AbsentIsIn(v, waits::kInterpreter); }

bool Downloads(const Verdict& v) {
  if (!v.socket.others.empty() || !v.standstill.others.empty()) return false;
  return AbsentIsIn(v, {"SSL_read", "SSL_connect", "hf_hub_download", "snapshot_download",
                        "getaddrinfo", "urlopen", "botocore"});
}

bool WaitsForItsGpu(const Verdict& v) {
  return Is(v, Cause::kMissingRank) && CulpritIsIn(v, waits::kGpu);
}

// A rank that creates an NCCL communicator exchanges its id through the store, too. One that
// expects ranks that do not exist waits for them wherever it is.
bool WaitsInAnotherLibrary(const Verdict& v) {
  if (v.start_fault == StartFault::kOtherSize) return false;
  if (!v.socket.others.empty()) return IsAbsence(v);
  if (CulpritIsIn(v, {"NCCL", "nccl", "Hccl", "hccl", "oneccl", "ccl::", "<rollcall>"}))
    return false;
  if (!IsLikeNccl(v.communicator_kind)) return false;  // its waits are the verdict's own
  return AbsentIsIn(v, waits::kOtherLibrary);
}

bool InSignalHandler(const Verdict& v) {
  if (AbsentIsIn(v, waits::kSignalHandler)) return true;
  if (!IsContradiction(v.cause) && !IsAbsence(v)) return false;
  if (CulpritIsIn(v, {kSignalInACall})) return true;
  return CulpritIsIn(v, waits::kSignalHandler) && !WaiterIsIn(v, waits::kSignalHandler);
}

bool CollectsGarbage(const Verdict& v) { return AbsentIsIn(v, {"gc_collect", ".__del__ "}); }

bool Imports(const Verdict& v) { return AbsentIsIn(v, {"._find_and_load "}); }

bool Logs(const Verdict& v) {
  return AbsentIsIn(v, {"StreamHandler.emit", "FileHandler.emit", "Logger.callHandlers",
                        "SummaryWriter.", "wandb_run.", "wandb.", "mlflow"});
}

// The thread that takes the results of a pool of processes stands beside the one that waits for
// them.
bool WaitsForAPool(const Verdict& v) {
  const bool has_pool = absl::StrContains(v.stack_words, "_ExecutorManagerThread") ||
                        absl::StrContains(v.stack_words, "_queue_management_worker");
  return has_pool && AbsentIsIn(v, waits::kPool);
}

bool WaitsForChild(const Verdict& v) {
  const Standstill& stand = v.standstill;
  if (stand.shape == StandShape::kOwnServer) return false;
  if (stand.shape == StandShape::kChild || stand.in == StandKind::kChild ||
      stand.in == StandKind::kPool || stand.in == StandKind::kMpiSpawn) {
    return true;
  }
  if (!v.outside.children.empty() || WaitsForAPool(v)) return IsAbsence(v);
  // A queue of multiprocessing, which a child fills.
  const bool has_queue = AbsentIsIn(v, {"_ConnectionBase.recv_bytes queues.Queue.get "});
  return (has_queue && !LoadsData(v)) || AbsentIsIn(v, {kPipeOfAChild}) ||
         AbsentIsIn(v, waits::kChild);
}

bool WaitsForOwnThread(StandKind kind) {
  return kind == StandKind::kQueue || kind == StandKind::kEvent || kind == StandKind::kThread ||
         kind == StandKind::kFuture || kind == StandKind::kCondition;
}

// In a backward pass and inside a call the main thread waits for other threads as a matter of
// course.
// A loop of the program's own, whatever the function is called.
bool IsAsleep(const Verdict& v) {
  return std::any_of(v.places.begin(), v.places.end(),
                     [](const StackPlace& place) { return place.inside == "time.sleep"; });
}

bool WaitsForThread(const Verdict& v) {
  if (WaitsForChild(v) || IsAsleep(v)) return false;
  if (Is(v, Cause::kStandstill)) return WaitsForOwnThread(v.standstill.in) && !v.standstill.writes;
  if (CulpritIsIn(v, {"backward", "nccl", "NCCL", "cuda", "DataLoader", "distributed_c10d.",
                      "c10d::", "gloo::"})) {
    return false;
  }
  return AbsentIsIn(v, waits::kThread);
}

// The program itself sleeps, and not somebody whom another entry names.
bool Sleeps(const Verdict& v) {
  if (WaitsForFileLock(v) || InSignalHandler(v) || CollectsGarbage(v) || Imports(v)) return false;
  if (Is(v, Cause::kStandstill)) return v.standstill.in == StandKind::kSleep;
  return !v.late && AbsentIsIn(v, waits::kSleep);
}

bool WaitForMessages(const Verdict& v) {
  if (WaitsForAMessageAlone(v)) return true;
  return Is(v, Cause::kStandstill) && v.standstill.in == StandKind::kGloo &&
         CulpritIsIn(v, waits::kMessage) && WaiterIsIn(v, waits::kMessage);
}

}  // namespace

const std::vector<AdviceEntry>& StackAdvice() {
  static const auto* const kTable = new std::vector<AdviceEntry>{
      {"debugger-prompt", WaitsForInput, "the culprit's stack reads from a terminal or is in pdb",
       "A breakpoint or a prompt on one rank waits for input, and no person is at its terminal.",
       "The rank waits for input. Remove breakpoint(), pdb or input() from the code, or answer "
       "the prompt."},
      {"storage-wait", WaitsForStorage,
       "the culprit is in state D, waits in the kernel for a file system, or is in fsync",
       "A process in state D waits for a disk or a network file system, and no signal can end it. "
       "All ranks then wait for the slowest server.",
       "The rank waits for storage. Check the mount, the server and the quota (`dmesg`, `df`, "
       "`nfsstat`). Do not read or write there while other ranks wait in collectives."},
      {"signal-handler", InSignalHandler, "the culprit's stack is in a handler of a signal",
       "A handler runs between two lines of the program, and Python's handlers may do anything: "
       "save, log, wait for a lock that the interrupted code holds.",
       "The rank is in a signal handler. Let handlers set a flag only, and act on the flag in "
       "the training loop, on all ranks at the same step."},
      {"loads-gpu-code", LoadsCudaModules, "the culprit's stack loads or looks up GPU code",
       "CUDA loads a kernel at its first use. Loading can wait for running kernels, and a running "
       "NCCL kernel waits for this rank.",
       "The rank loads GPU code while NCCL kernels run. Set CUDA_MODULE_LOADING=EAGER, or run "
       "each kernel once on every rank before the first collective."},
      {"gpu-memory-call", ManagesGpuMemory, "the culprit's stack allocates or frees GPU memory",
       "Allocating and freeing GPU or pinned memory can wait until the device is idle. The device "
       "stays busy while an NCCL kernel on it waits for another rank.",
       "The rank allocates or frees GPU memory while NCCL kernels run. Allocate before the loop, "
       "use a caching or stream-ordered allocator, and empty caches on all ranks at once."},
      {"compiles-alone", Compiles, "the culprit's stack is in a compiler",
       "A new shape or code path makes the framework compile kernels. When only one rank compiles, "
       "all others wait, for minutes.",
       "The rank compiles (torch.compile, Triton, NVRTC, XLA). Warm up on all ranks, mark dynamic "
       "shapes, share the compiler's cache, or raise --hang-after."},
      {"garbage-collection", CollectsGarbage,
       "the culprit's stack is in Python's garbage collector",
       "A collection of a large heap takes seconds, and ranks collect at different times. "
       "Finalizers (__del__) run inside it and may wait.",
       "The rank collects garbage. Call gc.freeze() after the set-up and gc.collect() on all "
       "ranks at the same step, and keep __del__ from waiting."},
      {"file-lock", WaitsForFileLock, "the culprit's stack waits for a file lock",
       "Lock files guard extension builds and download caches. A killed process can leave its lock "
       "file behind, and the next process then waits for ever.",
       "The rank waits for a lock file (extension build, model cache, data set). If a rank that "
       "waits in the call holds the lock, let it release the lock before the call. Else remove a "
       "stale lock, give each node its own cache, and let one rank build while the others wait in a "
       "barrier."},
      {"downloads-alone", Downloads, "the culprit's stack is in a network client",
       "The server decides how long a download from a hub or object store takes.",
       "The rank waits for a server. Look at that server, and give the request a timeout. Fetch "
       "what the job needs before it starts, or on one rank per node before the program creates "
       "communicators."},
      {"rank0-only-checkpoint", GathersState,
       "one side's stack gathers the state of a model, and the other side's does not",
       "All ranks must take part to gather a full state dict. Code that asks for it under `if rank "
       "== 0:` leaves the others in a barrier.",
       "Only some ranks take part in gathering the state or in saving it. Gather on every rank and "
       "write the file on one, or save a sharded state dict. If a signal, a time or a loss decides "
       "when to save, let all ranks agree on it first."},
      {"saves-alone", SavesCheckpoint, "the culprit's stack writes a checkpoint",
       "One rank writes for minutes, and the others are already in the next collective.",
       "The rank writes a checkpoint while the others wait. Save asynchronously or sharded, or "
       "raise the timeouts above the time that a save takes."},
      {"data-loader", LoadsData, "the culprit's stack is in a data loader",
       "A worker process died or hangs, the shared memory is full, or one shard is slower or "
       "shorter than the others.",
       "The rank waits for its data loader. Check its worker processes, /dev/shm and the shard it "
       "reads. Give the loader a timeout, so that it reports the failure."},
      {"engine-worker-stopped", LeftTheEnginesLoop,
       "the others run the model of an inference engine, and the culprit is not in the loop that "
       "does",
       "A worker that meets an error may leave its loop and stay alive. The engine gives the next "
       "batch to the others, which wait for that worker in the forward pass.",
       "The worker has left the loop of the inference engine (vLLM, SGLang). Read the first error "
       "in its log, and let the engine end all its workers when one fails."},
      {"imports-alone", Imports, "the culprit's stack imports a module",
       "Thousands of ranks that import from one file server wait for it, and a module may run "
       "code that waits.",
       "The rank imports a module. Import before the loop, keep the environment on a local "
       "disk, and look at what the module does at its top level."},
      {"logs-alone", Logs, "the culprit's stack logs or sends metrics",
       "A logger may wait for a pipe that no process reads, a full disk, or a server (wandb, "
       "MLflow, TensorBoard).",
       "The rank waits in its logging. Log in the background or on a queue that drops, and "
       "check the server, the disk and who reads the pipe."},
      {"waits-for-a-child", WaitsForChild,
       "the culprit's stack waits for a process that it started",
       "A child, or a worker of a pool, may work for long. It may also wait for a terminal, a lock or "
       "a full pipe, and its parent waits with it.",
       "The rank waits for a process that it started. Look at the child (`pstree -p PID`, "
       "`rollcall stacks CHILD`). If it uses the CPU, it works: raise --hang-after, or do the work "
       "before the job starts. If not, give the wait a timeout. If a worker of a "
       "multiprocessing.Pool has died (out of memory, a crash), its task never comes back: "
       "concurrent.futures raises an error then."},
      {"pipeline-out-of-step", WaitForMessages,
       "no rank moves, and the culprit and a rank that waits are in sends or receives that are not "
       "recorded; or the culprit waits in one while the others wait in a call",
       "A receive takes a message only with the tag and from the rank that it names.",
       "The two ends do not meet. Compare the peers (and the number of ranks from which each side "
       "computes them), the tags and the number of messages of both sides: one of them has left "
       "out, repeated or renumbered a message."},
      {"mixed-backends", WaitsInAnotherLibrary,
       "the culprit's stack waits in Gloo, MPI, a key-value store, or at a socket of another rank",
       "Two libraries wait for each other: some ranks are in an NCCL collective, and this rank is "
       "in a barrier, a store or a request that needs them.",
       "The rank waits for the others outside of NCCL (Gloo, MPI, TCPStore, a request to another "
       "rank). Give all ranks the same order of barriers and requests, and put none inside a branch "
       "on the rank."},
      {"waits-for-its-gpu", WaitsForItsGpu,
       "the culprit has not entered the call and waits for its GPU",
       "Earlier work on that GPU does not end: an endless kernel, a fault, or a wait for an event "
       "that no stream records.",
       "The rank waits for its own GPU. Check the work that it queued earlier (nvidia-smi, "
       "`dmesg` for Xid; CUDA_LAUNCH_BLOCKING=1 shows the kernel)."},
      {"gil-held", WaitsForTheGil,
       "the culprit's threads wait for Python's global lock and nothing moves",
       "A native call that holds the interpreter's lock stops every Python thread of the process.",
       "Threads of the rank wait for Python's lock. Look for the thread that does not wait for "
       "it: its native call should have released the lock."},
      {"metric-on-some-ranks", SyncsMetric, "the culprit's stack synchronizes a metric",
       "compute() of a distributed metric gathers its state from all ranks. Only some ranks call"
       " it, or they call it at different steps.",
       "The rank synchronizes a metric that the others do not. Call compute() on all ranks at "
       "the same step, and log the result on one."},
      {"clips-alone", ClipsGradients, "the culprit's stack computes the norm of gradients",
       "The norm of sharded gradients is a collective. A branch on the loss or on the rank "
       "decides whether a rank clips.",
       "The rank alone clips gradients. Compute the norm on all ranks in each step, also where a "
       "rank does not use it."},
      {"buffer-broadcast", SynchronizesBuffers,
       "one side's stack synchronizes the buffers of a model, and the other side makes another "
       "call",
       "DistributedDataParallel broadcasts buffers in each forward pass. A rank that validates "
       "alone makes a broadcast that meets the others' gradient all-reduce.",
       "One rank runs forward passes that the others do not (validation on rank 0 only), and its "
       "buffer broadcast meets their gradient all-reduce. Validate on every rank, or on the bare "
       "module (model.module), or build DistributedDataParallel with broadcast_buffers=False."},
      {"extra-call", CallsAlone,
       "rank 0 alone, or a call that programs make to report something, is beside the training "
       "step, and the others are in it",
       "Work under `if rank == 0:` or in a handler of an exception contains a collective: a mean "
       "for the log, full_tensor(), GatheredParameters, a barrier, one forward pass more.",
       "The rank makes a call that the others do not make. Move the call out of the branch, so "
       "that all ranks make it, or compute the value without communication."},
      {"handles-an-exception", HandlesAnException,
       "the culprit handles an exception, or one has ended its program while its process lives on",
       "An exception takes one rank out of the loop, and its handler waits: for the others, for a "
       "server, for its communicators to end. So the exception may not have been printed yet.",
       "The rank has met an exception, and its handler (except, finally, __exit__(), exit hook) now "
       "waits. Look into the exception first; let the handler print it, and make no call there that "
       "waits for other ranks or threads."},
      {"uneven-inputs", LeftTheLoop,
       "the culprit is behind the loop (in a barrier or another call, in destroy, at its exit) "
       "while the others are in a training step",
       "It had fewer batches than the others, or left the loop by an early stop or a limit that "
       "only it reached.",
       "One side has left the training loop and the other has not: it had fewer batches, stopped "
       "early, or made more or fewer calls on the way (a batch that it skipped or repeated, gradients "
       "accumulated over other steps). Let all ranks decide together when to stop and what to skip, use "
       "drop_last=True or pad the data, or wrap the loop in join()."},
      {"validates-alone", Validates, "the culprit's stack evaluates or validates",
       "One rank evaluates while the others train on, or its part of the validation data is "
       "longer.",
       "The rank evaluates while the others wait. Let all ranks evaluate, with the same number "
       "of batches, or add a barrier with a long timeout after the evaluation."},
      {"skipped-call", LeavesACallOut,
       "the culprit is in its training step, and the others make a call that it has left out",
       "A branch on data decides on some ranks only: an exception that the code ignores, a NaN, "
       "nothing to gather, no file to load, an expert without tokens.",
       "The rank has left out a call that the others make, or a part of its step. Look for the "
       "branch before it, and let all ranks decide together, or make the call with nothing in it."},
      {"waits-for-a-thread", WaitsForThread,
       "the culprit's stack waits for a queue, a lock or a thread of its own process",
       "The thread that should answer has ended with an exception, waits itself, or was never "
       "started.",
       "The rank waits for another thread of its own. The stacks of its other threads show what"
       " they do; look for one that has ended with an exception, and give the wait a timeout."},
      {"sleeps-alone", Sleeps, "the culprit's stack sleeps",
       "A loop that tries again, or polls for a file or a server, sleeps between two looks.",
       "The rank sleeps. Look at what its loop waits for (a file, a server, a flag of another "
       "rank), and end it after a limit on all ranks together."},
  };
  return *kTable;
}

}  // namespace rollcall
