// SPDX-License-Identifier: Apache-2.0
#include "cli/explanations.h"

#include <array>
#include <cstddef>
#include <utility>

namespace rollcall {
namespace {

constexpr size_t kLongestLine = size_t{64} << 10;  // what comes after it does not count

using LowerTexts = std::array<std::string, 3>;

// In the C locale, whatever the locale of the process.
char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = Lower(c);
  return lower;
}

// The texts of Explanations(), in its order.
const std::vector<LowerTexts>& AllLowerTexts() {
  static const std::vector<LowerTexts> all = [] {
    std::vector<LowerTexts> made;
    made.reserve(Explanations().size());
    for (const Explanation& row : Explanations()) {
      LowerTexts texts;
      for (size_t i = 0; i < texts.size(); ++i) texts[i] = Lower(row.texts[i]);
      made.push_back(std::move(texts));
    }
    return made;
  }();
  return all;
}

bool HasInOrder(std::string_view lower_line, const LowerTexts& texts) {
  size_t at = 0;
  for (const std::string& text : texts) {
    if (text.empty()) break;
    at = lower_line.find(text, at);
    if (at == std::string_view::npos) return false;
    at += text.size();
  }
  return true;
}

}  // namespace

const std::vector<Explanation>& Explanations() {
  static const std::vector<Explanation> rows = {
      // PyTorch's watchdog and heartbeat monitor of NCCL.
      {"torch-watchdog-timeout",
       {"Watchdog caught collective operation timeout", "", ""},
       "PyTorch's watchdog on this rank: a call did not end within its timeout. The line gives "
       "the call's number, kind and size.",
       "This rank waited. It is nearly never the rank at fault: the culprit is a rank that did "
       "not make this call, or made another one. That rank may have printed nothing.",
       "Put the Flight Recorder dumps and the logs of all ranks into one folder: `rollcall "
       "analyze FOLDER`. For the next run: `rollcall run --on-hang=observe -- CMD...` names the "
       "culprit before the timeout.",
       "pytorch/pytorch torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, "
       "WorkNCCL::checkTimeout()"},
      {"torch-failure-detected",
       {"detected by watchdog at work", "", ""},
       "PyTorch's watchdog on this rank: a call failed or timed out. The line gives the last call "
       "that the rank queued and the last one that ended.",
       "A distance between the two numbers is no fault: a rank queues calls ahead of its GPU. "
       "Compare the numbers of all ranks, on the same communicator.",
       "Put the Flight Recorder dumps and the logs of all ranks into one folder: `rollcall "
       "analyze FOLDER`.",
       "pytorch/pytorch torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, Watchdog::runLoop()"},
      {"torch-timeout-at-work",
       {"Timeout at NCCL work:", "last completed NCCL work", ""},
       "PyTorch's watchdog on this rank gives the number of the call that timed out, of the last "
       "call that the rank queued, and of the last one that ended.",
       "A huge last number (3452013982) is no count. As a rule no call on this communicator has "
       "ended then. The line does not say which rank is absent.",
       "Put the Flight Recorder dumps and the logs of all ranks into one folder: `rollcall "
       "analyze FOLDER`.",
       "pytorch/pytorch torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp of older releases"},
      {"torch-dump-signal-local",
       {"Received a dump signal due to a collective timeout from", "this local rank", ""},
       "PyTorch's heartbeat monitor: the watchdog of this rank saw a timeout or an error, and the "
       "monitor now writes the Flight Recorder's dump.",
       "The rank that reports first is mostly the one that waited longest, not the culprit. The "
       "two numbers count calls on the default communicator. The call that timed out may be on "
       "another one.",
       "Put the Flight Recorder dumps and the logs of all ranks into one folder: `rollcall "
       "analyze FOLDER`. Without dumps: set TORCH_NCCL_TRACE_BUFFER_SIZE=2000 and "
       "TORCH_NCCL_DUMP_ON_TIMEOUT=1.",
       "pytorch/pytorch torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, "
       "HeartbeatMonitor::runLoop()"},
      {"torch-dump-signal",
       {"Received a dump signal due to a collective timeout from", "", ""},
       "PyTorch's heartbeat monitor: another rank saw a timeout or an error first, and asked all "
       "ranks to write their Flight Recorder dumps.",
       "The rank in the line waited and reported first. It is not the culprit. The two numbers "
       "count calls on the default communicator. The call that timed out may be on another one.",
       "Put the Flight Recorder dumps and the logs of all ranks into one folder: `rollcall "
       "analyze FOLDER`. Each rank writes its own dump.",
       "pytorch/pytorch torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, "
       "HeartbeatMonitor::runLoop()"},
      {"torch-dump-observed",
       {"Observed flight recorder dump signal from another rank", "", ""},
       "PyTorch's heartbeat monitor read in the store that another rank had a timeout or an "
       "error. This rank writes its Flight Recorder dump next.",
       "It does not say that this rank failed, and not that it is healthy.",
       "Put the Flight Recorder dumps and the logs of all ranks into one folder: `rollcall "
       "analyze FOLDER`.",
       "pytorch/pytorch torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, "
       "HeartbeatMonitor::runLoop()"},
      {"torch-no-stack-trace",
       {"Stack trace of the failed collective not found", "", ""},
       "PyTorch's watchdog has no stack of the call that failed: the Flight Recorder was off, or "
       "the stack took longer than 8 s to translate.",
       "Nothing more is broken. The missing stack says nothing about the cause.",
       "For the next run set TORCH_NCCL_TRACE_BUFFER_SIZE=2000 and TORCH_NCCL_DUMP_ON_TIMEOUT=1, "
       "or use `rollcall run --on-hang=observe -- CMD...`, which takes the stacks while the job "
       "hangs.",
       "pytorch/pytorch torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, "
       "WorkNCCL::printTraceback()"},
      {"torch-watchdog-stuck",
       {"watchdog got stuck for", "", ""},
       "PyTorch's heartbeat monitor: the watchdog thread of this rank has not moved for this time "
       "(8 min by default). PyTorch then ends the rank.",
       "It does not say that a collective timed out: the thread that would see that is itself "
       "blocked, often in a CUDA call or behind Python's lock. A longer heartbeat does not "
       "release it.",
       "While the job hangs: `rollcall stacks PID` shows what the threads of this rank wait for.",
       "pytorch/pytorch torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, "
       "HeartbeatMonitor::runLoop()"},
      {"torch-gil",
       {"Could not acquire GIL within", "possible GIL induced hang", ""},
       "PyTorch's heartbeat monitor asked for Python's lock before it ends this rank, and did not "
       "get it within 300 ms.",
       "300 ms is short: a thread that computes in C++ can hold the lock that long without any "
       "fault. The line proves no deadlock.",
       "While the job hangs: `rollcall stacks PID` shows which thread has the lock, and what it "
       "does.",
       "pytorch/pytorch torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, "
       "HeartbeatMonitor::runLoop()"},
      {"torch-ends-after-dump",
       {"Terminating the process after attempting to dump debug info", "", ""},
       "PyTorch's heartbeat monitor ends this rank. The words after \"due to\" give its reason.",
       "This line ends the rank, but it is not the cause. The cause is in an earlier line, often "
       "of another rank.",
       "Put the Flight Recorder dumps and the logs of all ranks into one folder: `rollcall "
       "analyze FOLDER`.",
       "pytorch/pytorch torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, "
       "getNCCLWatchdogTimeoutExitMsg()"},
      {"torch-operations-failed",
       {"Some NCCL operations have failed or timed out", "", ""},
       "PyTorch's watchdog prints this text after each call that failed or timed out, before it "
       "ends the rank.",
       "It does not say that data is corrupt. It names neither the call nor the cause: they are "
       "in the lines above.",
       "Look for the first \"Watchdog caught\" or \"NCCL error\" in the logs of all ranks. With "
       "Flight Recorder dumps in the same folder: `rollcall analyze FOLDER`.",
       "pytorch/pytorch torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, "
       "WorkNCCL::handleException()"},
      {"torch-takes-process-down",
       {"we are taking the entire process down", "", ""},
       "PyTorch's watchdog ends this rank after a call failed or timed out.",
       "The rank does not end because its data is wrong. It ends because it waited for another "
       "rank, or because NCCL reported an error.",
       "Look for the first \"Watchdog caught\" or \"NCCL error\" in the logs of all ranks. For "
       "the next run: `rollcall run --on-hang=observe -- CMD...`.",
       "pytorch/pytorch torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, "
       "WorkNCCL::handleException()"},
      {"torch-dump-flag-unreadable",
       {"Failed to check the \"should dump\" flag on TCPStore", "", ""},
       "PyTorch's heartbeat monitor on this rank asks the store each second whether it must write "
       "a dump, and the store does not answer.",
       "It is no proof of a broken network. The process with the store, mostly rank 0 or its "
       "launcher, ended first. A healthy job whose rank 0 leaves first can print it, too.",
       "Find out when and why rank 0 and its launcher ended: the end of their logs, `dmesg`.",
       "pytorch/pytorch torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, "
       "HeartbeatMonitor::runLoop()"},
      {"torch-blocking-wait",
       {"timed out in blocking wait", "", ""},
       "PyTorch on this rank waited for a call in wait(), and the call did not end within its "
       "timeout.",
       "This rank waited. The culprit is a rank that did not make this call, or made another one.",
       "`rollcall run --on-hang=observe -- CMD...` names the culprit. `rollcall stacks PID` shows "
       "what a rank does now.",
       "pytorch/pytorch torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, WorkNCCL::wait()"},
      // PyTorch: collectives, barriers, DistributedDataParallel.
      {"torch-collective-mismatch",
       {"Detected mismatch between collectives on ranks", "", ""},
       "PyTorch with TORCH_DISTRIBUTED_DEBUG=DETAIL compared the calls of all ranks before NCCL "
       "ran them. Two ranks make different calls at the same position.",
       "The rank that prints it only compared first. The line does not say which of the two ranks "
       "is wrong.",
       "Compare the tracebacks of the two ranks, and look for a branch that depends on the rank "
       "or on the data. `rollcall run --on-hang=observe -- CMD...` finds this without DETAIL.",
       "pytorch/pytorch torch/csrc/distributed/c10d/ProcessGroupWrapper.cpp, verify_tensors()"},
      {"torch-monitored-barrier",
       {"failed to pass monitoredBarrier", "", ""},
       "PyTorch's monitored_barrier() on rank 0: the ranks in the line did not come to the "
       "barrier in time.",
       "Without wait_all_ranks the line names only the first absent rank, and more can be absent. "
       "An absent rank can itself wait for another rank.",
       "`rollcall stacks PID` on the host of the absent rank, or `rollcall run --on-hang=observe "
       "-- CMD...` for the whole job.",
       "pytorch/pytorch torch/csrc/distributed/c10d/ProcessGroupGloo.cpp, monitoredBarrier()"},
      {"torch-device-unknown",
       {"used by this process", "currently unknown", ""},
       "PyTorch on this rank: the program did not say which GPU the rank uses, so barrier() takes "
       "the GPU with the rank's number.",
       "It is a warning, and most jobs that print it are healthy. The job hangs or fails only if "
       "the guess is another GPU than the rank's own.",
       "Call torch.cuda.set_device() early and pass device_id= to init_process_group().",
       "pytorch/pytorch torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, barrier()"},
      {"torch-no-destroy",
       {"destroy_process_group() was not called before program exit", "", ""},
       "PyTorch on the first rank of a host: the program ended without destroy_process_group().",
       "It is not why the program ended. After an exception this line always comes, and the "
       "exception is above it.",
       "Read the lines above. In a healthy program call torch.distributed.destroy_process_group() "
       "at the end, on all ranks.",
       "pytorch/pytorch torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, ~ProcessGroupNCCL()"},
      {"ddp-parameter-count",
       {"DDP expects same model across all ranks", "", ""},
       "PyTorch's DistributedDataParallel gathered the number of parameters from all ranks when "
       "it was built, and two ranks differ.",
       "With \"inconsistent 0 params\" the models are often the same: the gathering itself was "
       "aborted, because a rank came too late or ended.",
       "First look for an earlier error or timeout on any rank. Then print the parameters on each "
       "rank. `rollcall run --on-hang=observe -- CMD...` names a rank that did not come.",
       "pytorch/pytorch torch/csrc/distributed/c10d/reducer.cpp, verify_params_across_processes()"},
      {"ddp-unfinished-reduction",
       {"Expected to have finished reduction in the prior iteration", "", ""},
       "PyTorch's DistributedDataParallel on this rank: some parameters got no gradient in the "
       "last step, so their all-reduce never began.",
       "It is an error of the program, not of the network. Other ranks may show a timeout "
       "instead, when only some ranks skip these parameters.",
       "Let every rank use the same parameters in each step, or set find_unused_parameters=True. "
       "TORCH_DISTRIBUTED_DEBUG=DETAIL names the parameters.",
       "pytorch/pytorch torch/csrc/distributed/c10d/reducer.cpp, "
       "ensure_prior_reduction_finished()"},
      // PyTorch's store (TCPStore) and rendezvous.
      {"store-wait-timeout",
       {"wait timeout after", "ms, keys:", ""},
       "PyTorch's store: this rank waited for a key that another rank must set, and the key did "
       "not come in time.",
       "The store answers, so the network to it works. This rank is not at fault: the rank that "
       "sets the key did not come.",
       "Find the absent rank: `rollcall stacks PID` on each host, or `rollcall run "
       "--on-hang=observe -- CMD...`. For the id of a communicator the key is set by the "
       "communicator's rank 0.",
       "pytorch/pytorch torch/csrc/distributed/c10d/TCPStore.cpp, doWait()"},
      {"store-socket-timeout",
       {"DistStoreError: Socket Timeout", "", ""},
       "PyTorch's store (older releases): this rank waited for a key that another rank must set, "
       "and the key did not come in time.",
       "In spite of its name it is no fault of a socket. The rank that sets the key did not come.",
       "Find the absent rank: `rollcall stacks PID` on each host, or `rollcall run "
       "--on-hang=observe -- CMD...`.",
       "pytorch/pytorch torch/csrc/distributed/c10d/TCPStore.cpp, doWait(), commit 00321a02d719"},
      {"store-connect-timeout",
       {"client socket has timed out after", "while trying to connect to", ""},
       "PyTorch's store: this rank got no connection to the address in the line, where rank 0 or "
       "the launcher serves the store.",
       "The rank that prints it is rarely at fault. Either the other side never began to listen "
       "there (it failed, is late, or uses another port), or a firewall or a wrong address is "
       "between them.",
       "Look at the end of rank 0's log first. Then check address and port from this host: `nc "
       "-vz ADDRESS PORT`, MASTER_ADDR, MASTER_PORT.",
       "pytorch/pytorch torch/csrc/distributed/c10d/socket.cpp, throwTimeoutError()"},
      {"store-port-taken",
       {"server socket has failed to listen on any local network address", "", ""},
       "PyTorch's store: rank 0 or the launcher could not listen on its port. Nearly always "
       "another process has the port (EADDRINUSE).",
       "The other ranks then report timeouts and lost connections. They are not at fault.",
       "`ss -ltnp` shows who has the port: often a process that an earlier run left. End it, or "
       "use another --master-port or --rdzv-endpoint.",
       "pytorch/pytorch torch/csrc/distributed/c10d/socket.cpp, SocketListenOp::run()"},
      {"store-receive-failed",
       {"recvValue failed on SocketImpl", "", ""},
       "PyTorch's store: the connection of this rank to the store broke while it waited for an "
       "answer.",
       "It is a consequence. The process that serves the store, mostly rank 0 or its launcher, "
       "has ended or was killed.",
       "Find out why the process at the address after \"remote=\" ended: the end of its log, its "
       "exit code, `dmesg`.",
       "pytorch/pytorch torch/csrc/distributed/c10d/TCPStore.cpp, TCPClient::receiveValue()"},
      {"store-send-failed",
       {"sendBytes failed on SocketImpl", "", ""},
       "PyTorch's store: this rank could not send a request, because the store has closed the "
       "connection.",
       "It is a consequence. The process that serves the store, mostly rank 0 or its launcher, "
       "ended before. The line comes again and again while this rank lives on.",
       "Find out why the process at the address after \"remote=\" ended: the end of its log, its "
       "exit code, `dmesg`.",
       "pytorch/pytorch torch/csrc/distributed/c10d/TCPStore.cpp, TCPClient::sendRaw()"},
      {"store-clients-missing",
       {"Timed out after", "waiting for clients", "clients joined"},
       "PyTorch's store on rank 0: fewer ranks connected than the world size says.",
       "Rank 0 is not at fault, and not every rank that prints a later error is absent.",
       "Compare the world size with the ranks that run: `pgrep -af train.py` on each host. Look "
       "for hosts where the launcher never began.",
       "pytorch/pytorch torch/csrc/distributed/c10d/TCPStore.cpp, waitForWorkers()"},
      {"store-barrier-timeout",
       {"Timed out initializing process group in store based barrier", "", ""},
       "PyTorch on this rank: not all ranks came to init_process_group() or new_group(). "
       "worker_count is the number that came.",
       "This rank waited. The ranks that did not print this line are the ones to look at.",
       "Compare worker_count with world_size, and look for ranks without this line. new_group() "
       "must be called on all ranks, in the same order.",
       "pytorch/pytorch torch/distributed/distributed_c10d.py, _store_based_barrier()"},
      {"store-barrier-waiting",
       {"Waiting in store based barrier to initialize process group", "", ""},
       "PyTorch on this rank waits in init_process_group() or new_group() until all ranks have "
       "come. It prints this every 10 s.",
       "It is not yet an error: ranks that load data or models come later.",
       "If worker_count does not grow, find the absent ranks: `rollcall stacks PID` on each host, "
       "or `rollcall run --on-hang=observe -- CMD...`.",
       "pytorch/pytorch torch/distributed/distributed_c10d.py, _store_based_barrier()"},
      {"rendezvous-timeout",
       {"RendezvousTimeoutError", "", ""},
       "torchrun's launcher on this host: fewer hosts than --nnodes came to the rendezvous in "
       "time.",
       "This host is not at fault. No rank has run yet, so NCCL has no part in it.",
       "Check that the launcher runs on all hosts with the same --rdzv-id, --rdzv-endpoint and "
       "--nnodes, and that each host reaches the endpoint.",
       "pytorch/pytorch torch/distributed/elastic/rendezvous/api.py"},
      // Launchers.
      {"elastic-killed",
       {"exitcode", ": -9", ""},
       "torchrun: signal 9 (SIGKILL) ended this rank. The sender is mostly the kernel's "
       "out-of-memory killer, a memory limit or the batch system.",
       "The rank printed no error, since a process cannot handle SIGKILL. Timeouts on other ranks "
       "are the consequence.",
       "`dmesg -T | grep -i 'killed process'` on the host of this rank, and the memory limit of "
       "its container or batch job.",
       "pytorch/pytorch torch/distributed/elastic/multiprocessing/errors/__init__.py and api.py"},
      {"elastic-segfault",
       {"exitcode", ": -11", ""},
       "torchrun: signal 11 (SIGSEGV) ended this rank: native code accessed memory that it does "
       "not have.",
       "It is not the out-of-memory killer. Timeouts and lost connections on other ranks are the "
       "consequence.",
       "Run with PYTHONFAULTHANDLER=1 and `ulimit -c unlimited`, then read the core dump: "
       "`coredumpctl gdb`.",
       "pytorch/pytorch torch/distributed/elastic/multiprocessing/errors/__init__.py and api.py"},
      {"elastic-aborted",
       {"exitcode", ": -6", ""},
       "torchrun: signal 6 (SIGABRT) ended this rank. The process ended itself: a watchdog of "
       "PyTorch, an exception in C++, or a failed assertion.",
       "If PyTorch's watchdog ended it, this rank waited for another rank and is not the culprit.",
       "Look in this rank's log for \"Watchdog caught\" or \"terminate called\". For the next "
       "run: `rollcall run --on-hang=observe -- CMD...`.",
       "pytorch/pytorch torch/distributed/elastic/multiprocessing/errors/__init__.py and api.py"},
      {"elastic-bus-error",
       {"exitcode", ": -7", ""},
       "torchrun: signal 7 (SIGBUS) ended this rank. The usual reason is a full /dev/shm, or a "
       "mapped file that became shorter.",
       "It is rarely broken hardware.",
       "`df -h /dev/shm` in the container of this rank. Docker's default is 64 MiB: use "
       "--shm-size or --ipc=host.",
       "pytorch/pytorch torch/distributed/elastic/multiprocessing/errors/__init__.py and api.py"},
      {"elastic-terminated",
       {"exitcode", ": -15", ""},
       "torchrun: signal 15 (SIGTERM) ended this rank. The launcher sends it to all ranks when "
       "one fails, and a batch system sends it to end a job.",
       "It is nearly always a consequence. This rank is not the one that failed first.",
       "Look for the rank with another exit code or an exception, on all hosts.",
       "pytorch/pytorch torch/distributed/elastic/multiprocessing/errors/__init__.py and api.py"},
      {"elastic-signal",
       {"traceback : Signal ", "received by PID", ""},
       "torchrun: the signal in the line ended this rank, so there is no traceback of Python.",
       "The signal does not say who sent it. SIGTERM comes mostly from the launcher itself, after "
       "another rank failed.",
       "9 (SIGKILL): `dmesg` for the out-of-memory killer. 11 and 7: the core dump. 6: the "
       "watchdog's lines above. 15: find the rank that failed before.",
       "pytorch/pytorch torch/distributed/elastic/multiprocessing/errors/__init__.py, commit "
       "0140b62d8bab"},
      {"elastic-child-failed",
       {"multiprocessing.errors.ChildFailedError", "", ""},
       "torchrun's launcher on this host: at least one of its ranks failed. The block below it "
       "lists the ranks of this host with their exit codes.",
       "\"Root Cause (first observed failure)\" is the failure that this launcher saw first, on "
       "this host. The rank at fault may be on another host, or just wait for a culprit.",
       "Compare the blocks of all hosts by time. Put logs and Flight Recorder dumps into one "
       "folder: `rollcall analyze FOLDER`.",
       "pytorch/pytorch torch/distributed/elastic/multiprocessing/errors/__init__.py, commit "
       "0140b62d8bab"},
      {"elastic-closing-signal",
       {"Sending process", "closing signal", ""},
       "torchrun's launcher ends the ranks of this host that still run, since another rank failed "
       "or the launcher got a signal.",
       "These ranks did not fail. It is a consequence.",
       "Look for the rank that is not in these lines, and for the first exception or exit code.",
       "pytorch/pytorch torch/distributed/elastic/multiprocessing/api.py"},
      {"elastic-death-signal",
       {"death signal, shutting down workers", "", ""},
       "torchrun's launcher got this signal from outside: a person, the batch system, or the end "
       "of a terminal session (SIGHUP).",
       "No rank of this host failed. A hang before it may be why somebody ended the job.",
       "SIGTERM: the log of the batch system. SIGHUP: start the job in tmux, or by the batch "
       "system. SIGINT: Ctrl-C.",
       "pytorch/pytorch torch/distributed/elastic/agent/server/api.py"},
      {"lightning-child-terminated",
       {"Child process with PID", "terminated with code",
        "Forcefully terminating all other processes"},
       "Lightning's launcher: the rank in the line ended with this code (negative: a signal), and "
       "Lightning kills the other ranks.",
       "-6 comes mostly from PyTorch's watchdog: this rank waited for another rank. -9 is no bug "
       "of Lightning: something killed the rank.",
       "-9: `dmesg` for the out-of-memory killer. -6: the lines of the watchdog above. Otherwise: "
       "this rank's traceback.",
       "Lightning-AI/pytorch-lightning "
       "src/lightning/fabric/strategies/launchers/subprocess_script.py"},
      {"deepspeed-killed",
       {"exits with return code = -9", "", ""},
       "DeepSpeed's launcher: signal 9 (SIGKILL) ended a rank of this host, mostly by the "
       "out-of-memory killer or a memory limit.",
       "The command in the line is that of the rank which the launcher started last. It need not "
       "be the rank that was killed.",
       "`dmesg -T | grep -i 'killed process'`, and the memory limit of the container. Offloading "
       "to the CPU needs much host memory.",
       "microsoft/DeepSpeed deepspeed/launcher/launch.py, commit 048b0d505481"},
      {"deepspeed-return-code",
       {"exits with return code =", "", ""},
       "DeepSpeed's launcher: a rank of this host ended with this code (negative: a signal), and "
       "the launcher killed the others.",
       "The command in the line is that of the rank which the launcher started last. It need not "
       "be the rank that failed.",
       "Look for the first traceback above the \"Killing subprocess\" lines. -6: PyTorch's "
       "watchdog, or an exception in C++.",
       "microsoft/DeepSpeed deepspeed/launcher/launch.py, commit 048b0d505481"},
      {"mpirun-process-ended",
       {"noticed that process rank", "exited on signal", ""},
       "Open MPI's launcher: a signal ended the rank in the line. The launcher then ends the job.",
       "Signal 9 or 15 may come from the batch system or the out-of-memory killer, and is then no "
       "fault of the program.",
       "9: `dmesg` on the node in the line. 11, 7 or 6: the core dump and the end of this rank's "
       "log.",
       "Open MPI, PRRTE: help-prun.txt, [prun:proc-aborted-strsignal]"},
      {"mpi-abort",
       {"MPI_ABORT was invoked on rank", "", ""},
       "MPI: the program on this rank called MPI_Abort, and MPI ends all ranks.",
       "MPI is not at fault: the program or a library decided to end. Other ranks that end at "
       "this moment are the consequence.",
       "Read the lines of this rank above the line.",
       "open-mpi/ompi ompi/mpi/help-mpi-api.txt, [mpi-abort]"},
      {"accelerate-old-kernel",
       {"Detected kernel version", "below the recommended minimum of", "cause the process to hang"},
       "Hugging Face Accelerate: the Linux kernel of this host is older than 5.5.",
       "It is a warning at each start on such a host, not a hang that was found. Most jobs that "
       "print it run.",
       "If the job does hang, do not stop at this line: `rollcall run --on-hang=observe -- "
       "CMD...` shows which rank is absent.",
       "huggingface/accelerate src/accelerate/utils/other.py, check_os_kernel()"},
      // Batch system.
      {"slurm-time-limit",
       {"CANCELLED AT", "DUE TO TIME LIMIT", ""},
       "Slurm ended the job or step, because its time was over.",
       "It does not say whether the job was slow or hung. A job that hangs ends like this when "
       "nothing else ends it.",
       "Compare the time of the last step in the logs with this line. For the next run: `rollcall "
       "run --on-hang=abort -- CMD...` ends a job that hangs.",
       "SchedMD/slurm src/slurmd/slurmstepd/req.c"},
      {"slurm-node-failure",
       {"CANCELLED AT", "DUE TO NODE FAILURE", ""},
       "Slurm ended the job or step, because a node of the job failed or no longer answered.",
       "The node in the line prints the message. It need not be the node that failed.",
       "`sacct -j JOB -o NodeList,State` and `sinfo -R` name the node and the reason. The log of "
       "slurmctld has more.",
       "SchedMD/slurm src/slurmd/slurmstepd/req.c"},
      {"slurm-preempted",
       {"CANCELLED AT", "DUE TO PREEMPTION", ""},
       "Slurm ended the job or step in favour of a job with a higher priority.",
       "No rank failed. Errors of ranks at this moment are the consequence.",
       "Save checkpoints often, and let Slurm requeue the job: `sbatch --requeue`.",
       "SchedMD/slurm src/slurmd/slurmstepd/req.c"},
      {"slurm-signal",
       {"CANCELLED AT", "DUE TO SIGNAL", ""},
       "Slurm ended the job or step, because somebody asked for it: scancel, or srun after a task "
       "had failed.",
       "The tasks on this node did not fail by themselves.",
       "Look for an earlier \"srun: error\" line with another node and task.",
       "SchedMD/slurm src/slurmd/slurmstepd/req.c"},
      {"slurm-out-of-memory",
       {"Detected", "oom", "kill event"},
       "Slurm: the kernel killed processes of this step, because the step used more host memory "
       "than it asked for.",
       "The killed process may be a helper (a data loader's worker) and not a rank. The step can "
       "then go on, and hang.",
       "Ask for more memory (`--mem`), or use fewer workers. `sacct -j JOB -o MaxRSS` shows the "
       "use. It is not the GPU's memory.",
       "SchedMD/slurm src/plugins/task/cgroup/task_cgroup_memory.c of 24.11; the second form is "
       "that of 20.11"},
      {"srun-task-failed",
       {"srun: error:", "task", "Exited with exit code"},
       "Slurm's srun: the tasks in the line ended with this code.",
       "The first such line counts. Later ones are often ranks that lost their peer, or that srun "
       "itself ended (--kill-on-bad-exit).",
       "Read the end of the log of the first task that srun names.",
       "SchedMD/slurm src/srun/launch.c"},
      {"srun-task-killed",
       {"srun: error:", "task", ": Killed"},
       "Slurm's srun: signal 9 (SIGKILL) ended the tasks in the line.",
       "It does not say who sent the signal: Slurm itself, the out-of-memory killer, or a person.",
       "Look for a line with \"oom\" or \"CANCELLED\" from slurmstepd, and in `dmesg` on this "
       "node.",
       "SchedMD/slurm src/srun/launch.c"},
      {"srun-task-aborted",
       {"srun: error:", "task", ": Aborted"},
       "Slurm's srun: the tasks in the line ended themselves by signal 6 (SIGABRT).",
       "With PyTorch this is mostly its watchdog: the task waited for another rank, and is not "
       "the culprit.",
       "Look in the log of this task for \"Watchdog caught\". For the next run: `rollcall run "
       "--on-hang=observe -- CMD...`.",
       "SchedMD/slurm src/srun/launch.c"},
      {"srun-step-aborted",
       {"srun: Job step aborted", "", ""},
       "Slurm's srun ends the step, and waits for its tasks to end.",
       "It is a consequence: of a task that failed, of scancel, or of the time limit.",
       "Read the first \"srun: error\" or \"slurmstepd: error\" line above.",
       "SchedMD/slurm src/api/step_launch.c"},
      // GPU, driver and CUDA. Before the rows of NCCL: NCCL prints these texts, too.
      {"gpu-fell-off-bus",
       {"NVRM", "fallen off the bus", ""},
       "NVIDIA's driver, in the kernel's log: the host no longer reaches this GPU over PCIe (Xid "
       "79).",
       "The program did not cause it. Ranks on other GPUs that wait or time out are the "
       "consequence.",
       "Take the host out of service, restart it, and check power, temperature and slot. `dmesg "
       "-T | grep Xid` gives the time: compare it with the hang.",
       "NVIDIA/open-gpu-kernel-modules, Xid 79; NVIDIA's documentation of Xid errors"},
      {"gpu-xid",
       {"NVRM: Xid", "", ""},
       "NVIDIA's driver, in the kernel's log: an error on this GPU. The number after the address "
       "is the kind.",
       "Not every Xid is broken hardware: some kinds, for example 13 and 31, often come from the "
       "program. The pid in the line need not be that of the rank.",
       "Look the number up in NVIDIA's Xid catalog, and compare the time of the line with the "
       "hang. `nvidia-smi -q` shows the state of the GPU.",
       "NVIDIA/open-gpu-kernel-modules src/nvidia/src/kernel/gpu/rc/kernel_rc.c, commit "
       "129479b1b734"},
      {"cuda-ecc",
       {"uncorrectable ECC error encountered", "", ""},
       "CUDA: the memory of this GPU returned data that it could not correct.",
       "The call that reports it did not cause it. It is hardware, and a restart of the program "
       "alone may run on the same broken memory.",
       "`nvidia-smi -q -d ECC` and `dmesg -T | grep Xid` on this host. Take the GPU out of "
       "service until it was reset and checked.",
       "CUDA runtime, cudaGetErrorString(cudaErrorECCUncorrectable)"},
      {"cuda-illegal-access",
       {"an illegal memory access was encountered", "", ""},
       "CUDA: a kernel on this GPU accessed memory that it does not have. All later CUDA calls of "
       "the process fail, too.",
       "NCCL or the watchdog that reports it is mostly only the first to look. The wrong kernel "
       "ran earlier.",
       "Run with CUDA_LAUNCH_BLOCKING=1 or under `compute-sanitizer`. The ranks that wait for "
       "this rank are the consequence.",
       "CUDA runtime, cudaGetErrorString(cudaErrorIllegalAddress)"},
      {"cuda-assert",
       {"device-side assert triggered", "", ""},
       "CUDA: an assertion in a kernel failed on this GPU. In training this is mostly an index "
       "outside its range: a label, a token.",
       "The line of Python in the traceback is mostly not the line that launched the kernel.",
       "Run with CUDA_LAUNCH_BLOCKING=1. The assertion itself is printed above, with its file and "
       "line.",
       "CUDA runtime, cudaGetErrorString(cudaErrorAssert)"},
      {"cuda-busy",
       {"CUDA-capable device(s) is/are busy or unavailable", "", ""},
       "CUDA: this rank cannot open its GPU. Another process has it in exclusive mode, or the GPU "
       "does not work.",
       "nvidia-smi may show the GPU as idle all the same.",
       "`nvidia-smi -q -d COMPUTE` shows the mode, `fuser -v /dev/nvidia*` the processes. End "
       "those that an earlier run left.",
       "CUDA runtime, cudaGetErrorString(cudaErrorDevicesUnavailable)"},
      {"cuda-out-of-memory",
       {"CUDA out of memory. Tried to allocate", "", ""},
       "PyTorch on this rank: the memory of its GPU is full.",
       "Only this rank fails. If the program catches the error or the launcher does not end the "
       "job, the other ranks wait for this rank and report timeouts.",
       "Let the launcher end the job when a rank fails. Then use smaller batches, or "
       "torch.cuda.memory_summary() to see what fills the memory.",
       "pytorch/pytorch c10/cuda/CUDACachingAllocator.cpp"},
      {"cuda-asynchronous",
       {"kernel errors might be asynchronously reported at some other API call", "", ""},
       "PyTorch prints this below each error of CUDA: kernels run later than the line that "
       "launched them.",
       "It is not an error of its own. It says that the traceback may point at the wrong line.",
       "Read the error above it. CUDA_LAUNCH_BLOCKING=1 makes the traceback right, and the job "
       "slow.",
       "pytorch/pytorch c10/cuda"},
      // NCCL.
      {"nccl-ib-retry-12",
       {"Got completion from peer", "status=12 ", ""},
       "NCCL over InfiniBand or RoCE: the peer in the line did not answer, after all retries "
       "(status 12, retry exceeded).",
       "A bad cable is only one reason. A peer that ended, a host that stopped or a congested "
       "fabric gives the same line. Which rank is at fault does not follow.",
       "First check whether the peer's process lives. Then its link: `ibstat`, counters of NIC "
       "and switch. NCCL_IB_TIMEOUT allows a longer silence.",
       "NVIDIA/nccl src/transport/net_ib.cc, v2.27.7-1"},
      {"nccl-ib-retry-exceeded",
       {"Got completion from peer", "IBV_WC_RETRY_EXC_ERR", ""},
       "NCCL over InfiniBand or RoCE: the peer in the line did not answer, after all retries "
       "(status 12, retry exceeded).",
       "A bad cable is only one reason. A peer that ended, a host that stopped or a congested "
       "fabric gives the same line. Which rank is at fault does not follow.",
       "First check whether the peer's process lives. Then its link: `ibstat`, counters of NIC "
       "and switch. NCCL_IB_TIMEOUT allows a longer silence.",
       "NVIDIA/nccl src/transport/net_ib/p2p.cc, v2.30.7-1"},
      {"nccl-ib-completion",
       {"Got completion from peer", "status=", ""},
       "NCCL over InfiniBand or RoCE: a transfer to or from the peer in the line failed. The "
       "status gives the kind.",
       "The rank that prints it is not the culprit by that alone. Errors that follow on the same "
       "connection are consequences: the first one in all logs counts.",
       "Sort these lines of all ranks by time and look at the first. Then `ibstat` and `dmesg` on "
       "both hosts, and whether the peer's process ended.",
       "NVIDIA/nccl src/transport/net_ib.cc, v2.27.7-1"},
      {"nccl-ib-fatal-event",
       {"NET/IB", "async fatal event", ""},
       "NCCL: the driver of the InfiniBand or RoCE adapter reports a fatal error on the device in "
       "the line.",
       "Ranks on other hosts that wait are the consequence.",
       "`dmesg -T` and `ibstat` on this host. Take the host out of service if the adapter does "
       "not recover.",
       "NVIDIA/nccl src/transport/net_ib/common.cc, v2.30.7-1"},
      {"nccl-ib-event",
       {"NET/IB", "async event", ""},
       "NCCL: the driver of the InfiniBand or RoCE adapter reports an event, for example a port "
       "that went down or came back.",
       "Not each event breaks a transfer: a port that comes back in time costs only time.",
       "`dmesg -T` and the counters of the port on this host. Compare the time with the first "
       "error of the job.",
       "NVIDIA/nccl src/transport/net_ib/common.cc, v2.30.7-1; src/transport/net_ib.cc, v2.21.5-1"},
      {"nccl-ib-receive-info",
       {"posted incorrect receive info", "", ""},
       "NCCL over InfiniBand or RoCE: this rank wants to send, and the peer in the line announced "
       "a buffer that does not fit.",
       "It is mostly not the network. The two ranks make different calls, or calls of different "
       "sizes, at the same position.",
       "`rollcall run --on-hang=observe -- CMD...` names the two calls. Look for ranks whose "
       "sizes depend on their data.",
       "NVIDIA/nccl src/transport/net_ib.cc, v2.27.7-1"},
      {"nccl-ib-collective-mismatch",
       {"collective mismatch error, local size", "", ""},
       "NCCL over InfiniBand or RoCE: two ranks transfer different sizes at the same position. "
       "The line gives both sizes.",
       "It is not the network. Which of the two ranks is wrong does not follow from the line.",
       "`rollcall run --on-hang=observe -- CMD...` names the two calls. Look for ranks whose "
       "sizes depend on their data.",
       "NVIDIA/nccl src/transport/net_ib.cc, v2.18.3-1"},
      {"nccl-socket-truncated",
       {"NET/Socket", "message truncated : receiving", ""},
       "NCCL over sockets: the peer in the line sent more bytes than this rank expects.",
       "It is mostly not the network. The ranks make calls of different sizes, or run with "
       "different NCCL_PROTO or NCCL_ALGO.",
       "`rollcall run --on-hang=observe -- CMD...` names the two calls. Compare the NCCL_* "
       "variables of the hosts.",
       "NVIDIA/nccl src/transport/net_socket.cc, v2.27.7-1"},
      {"nccl-bootstrap-truncated",
       {"NCCL WARN Message truncated : received", "", ""},
       "NCCL while it creates a communicator: this rank got a message of another size than it "
       "expects. Two ranks are at different steps of the creation.",
       "The network did not lose bytes.",
       "Compare the version of NCCL on all hosts, and the order in which the ranks create "
       "communicators. `rollcall run --on-hang=observe -- CMD...` shows this order.",
       "NVIDIA/nccl src/bootstrap.cc, v2.27.7-1"},
      {"nccl-connect-retries",
       {"connect to", "exceeded error retry count after", ""},
       "NCCL: this rank got no connection to the address in the line. The words after "
       "\"returned\" give the reason.",
       "\"Connection refused\" is not a firewall by itself: mostly the rank at that address has "
       "ended or has not begun to listen.",
       "Check whether the rank at that address lives. If it does, check the interface "
       "(NCCL_SOCKET_IFNAME) and the firewall between the hosts.",
       "NVIDIA/nccl src/misc/socket.cc, v2.27.7-1; src/os/linux.cc, v2.30.7-1"},
      {"nccl-connect-retrying",
       {"connect to", "returned", ", retrying"},
       "NCCL: the first try to connect to the address in the line failed, and NCCL tries again.",
       "A few of these lines at the start are harmless: the other rank does not listen yet.",
       "If they do not end, check whether the rank at that address lives, and NCCL_SOCKET_IFNAME "
       "on both hosts.",
       "NVIDIA/nccl src/misc/socket.cc, v2.27.7-1"},
      {"nccl-connect-refused",
       {"Call to connect returned", "retrying", ""},
       "NCCL before 2.24: the first tries to connect to another rank failed, and NCCL tries again.",
       "A few of these lines at the start are harmless: the other rank does not listen yet.",
       "If they do not end, check whether all ranks live, and NCCL_SOCKET_IFNAME on all hosts.",
       "NVIDIA/nccl src/misc/socket.cc, v2.18.3-1"},
      {"nccl-connect-failed",
       {"NCCL WARN", "connect to", "failed :"},
       "NCCL: this rank cannot connect to the address in the line, and does not try again. The "
       "reason is at the end of the line.",
       "\"No route to host\" says nothing about the rank at that address. Mostly NCCL chose an "
       "interface that the other hosts do not reach.",
       "Set NCCL_SOCKET_IFNAME to the interface that all hosts share, and run with "
       "NCCL_DEBUG=INFO to see the choice.",
       "NVIDIA/nccl src/misc/socket.cc, v2.18.3-1; src/os/linux.cc, v2.30.7-1"},
      {"nccl-connection-closed",
       {"Connection closed by remote peer", "", ""},
       "NCCL: the rank at the address in the line closed its connection. Mostly its process has "
       "ended.",
       "This rank is not at fault. It is only connected to the rank that ended first, or to one "
       "that followed it.",
       "Find the rank at that address, and the rank with the earliest error. Put logs and Flight "
       "Recorder dumps into one folder: `rollcall analyze FOLDER`.",
       "NVIDIA/nccl src/misc/socket.cc, v2.27.7-1"},
      {"nccl-remote-error",
       {"remote process exited or there was a network error", "", ""},
       "NCCL (ncclRemoteError): the connection to another rank broke.",
       "The text gives two reasons, and mostly it is the first: another rank ended. The ranks "
       "that print it are victims, and the culprit may have printed nothing of the kind.",
       "Look for the rank without this error and for the earliest error of all ranks. For the "
       "next run: `rollcall run --on-hang=observe -- CMD...`.",
       "NVIDIA/nccl src/init.cc, ncclGetErrorString(), v2.30.7-1"},
      {"nccl-system-error",
       {"unhandled system error (run with NCCL_DEBUG=INFO for details)", "", ""},
       "NCCL (ncclSystemError): a call to the operating system failed: a socket, shared memory, "
       "an adapter.",
       "The text does not say which call. It is not an error of the program's collectives.",
       "Run with NCCL_DEBUG=INFO: the \"NCCL WARN\" line above gives the call. Often `df -h "
       "/dev/shm` or NCCL_SOCKET_IFNAME helps.",
       "NVIDIA/nccl src/init.cc, ncclGetErrorString(), v2.30.7-1"},
      {"nccl-cuda-error",
       {"unhandled cuda error (run with NCCL_DEBUG=INFO for details)", "", ""},
       "NCCL (ncclUnhandledCudaError): a call to CUDA failed on this rank.",
       "NCCL is often only the first that looks: the error may come from a kernel that ran "
       "before, or from memory that is full.",
       "Run with NCCL_DEBUG=INFO: the \"NCCL WARN Cuda failure\" line above gives the error. "
       "CUDA_LAUNCH_BLOCKING=1 shows the kernel.",
       "NVIDIA/nccl src/init.cc, ncclGetErrorString(), v2.30.7-1"},
      {"nccl-internal-error",
       {"internal error - please report this issue to the NCCL developers", "", ""},
       "NCCL (ncclInternalError): NCCL met a state that it does not expect.",
       "It is not always a bug of NCCL. A peer that ended, and hosts with different versions or "
       "settings, lead here, too.",
       "Run with NCCL_DEBUG=INFO and read the first \"NCCL WARN\" of all ranks. Compare NCCL's "
       "version and the NCCL_* variables of all hosts.",
       "NVIDIA/nccl src/init.cc, ncclGetErrorString(), v2.30.7-1"},
      {"nccl-cuda-failure",
       {"NCCL WARN Cuda failure", "", ""},
       "NCCL: a call to CUDA failed on this rank. The text in quotes gives the error.",
       "NCCL mostly did not cause it: CUDA reports an error of an earlier kernel at the next "
       "call, whoever makes it.",
       "Read the text in quotes: \"out of memory\": the GPU is full. Otherwise `dmesg -T | grep "
       "Xid`, and a run with CUDA_LAUNCH_BLOCKING=1.",
       "NVIDIA/nccl src/include/checks.h, v2.27.7-1"},
      {"nccl-duplicate-gpu",
       {"Duplicate GPU detected", "", ""},
       "NCCL: two ranks of a communicator use the same GPU.",
       "The number after \"CUDA device\" is an address on the PCI bus, not the index of a GPU.",
       "Call torch.cuda.set_device(LOCAL_RANK) before the first collective. Check "
       "CUDA_VISIBLE_DEVICES and the number of ranks for each host.",
       "NVIDIA/nccl src/init.cc, v2.27.7-1"},
      {"nccl-version-mismatch",
       {"Mismatched NCCL version detected", "", ""},
       "NCCL: two ranks of a communicator use different versions of NCCL.",
       "The version that PyTorch prints need not be the one that is loaded: LD_LIBRARY_PATH or "
       "LD_PRELOAD may bring another.",
       "`grep -h libnccl /proc/PID/maps | awk '{print $6}' | sort -u` for a rank of each host.",
       "NVIDIA/nccl src/init.cc, v2.27.7-1"},
      {"nccl-shm-extend",
       {"failed to extend", "/dev/shm/nccl-", ""},
       "NCCL: there is no room in /dev/shm for a buffer that two ranks of this host share.",
       "The host has enough memory. /dev/shm has a limit of its own, in a container often 64 MiB.",
       "`df -h /dev/shm` in the container. Use --shm-size or --ipc=host (Docker), or an emptyDir "
       "with medium Memory (Kubernetes).",
       "NVIDIA/nccl src/misc/shmutils.cc, v2.27.7-1"},
      {"nccl-shm-segment",
       {"Error while", "shared memory segment", "(size"},
       "NCCL: this rank could not create or open a buffer that it shares with another rank of its "
       "host.",
       "It is not the network and not the GPU.",
       "\"No space left\": `df -h /dev/shm`, --shm-size. \"No such file\": often the ranks of one "
       "host are in containers that do not share /dev/shm.",
       "NVIDIA/nccl src/misc/shmutils.cc, v2.27.7-1"},
      {"nccl-no-interface",
       {"Bootstrap : no socket interface found", "", ""},
       "NCCL: no network interface of this host fits.",
       "It does not say that the host has no network: mostly NCCL_SOCKET_IFNAME names an "
       "interface that this host calls otherwise.",
       "`ip -br addr` on this host, and NCCL_SOCKET_IFNAME of the job. Unset it, or use a prefix "
       "that fits all hosts.",
       "NVIDIA/nccl src/bootstrap.cc, v2.27.7-1"},
      {"nccl-launch-race",
       {"host threads racing to launch NCCL on same device", "", ""},
       "NCCL: two threads of this rank made calls on the same GPU at the same time.",
       "It is an error of the program, not of NCCL: without an order between the threads each "
       "rank may run its calls in another order, and the job hangs.",
       "Make all calls on a GPU from one thread, or lock. `rollcall run --on-hang=observe -- "
       "CMD...` reports such calls as concurrent_use.",
       "NVIDIA/nccl src/misc/strongstream.cc, v2.30.7-1"},
      {"nccl-communicator-aborted",
       {"NCCL communicator was aborted on rank", "", ""},
       "PyTorch on this rank: the program made a call on a communicator that PyTorch had aborted "
       "before, after an error or a timeout.",
       "It is a consequence. The reason, if PyTorch knows it, is at the end of the line.",
       "Look for the first \"Watchdog caught\" or \"NCCL error\" in the logs of all ranks. "
       "`rollcall run --on-hang=observe -- CMD...` names the rank at fault.",
       "pytorch/pytorch torch/csrc/distributed/c10d/NCCLUtils.cpp, NCCLComm::getNcclComm()"},
      {"ras-operation-counts",
       {"Communicator ranks have different", "operation counts", ""},
       "NCCL's RAS: ranks of this communicator have launched different numbers of this call.",
       "In a job that runs this is normal, since ranks are never at the same place. It is a hang "
       "only if the numbers stay the same. The lower number is not always the culprit.",
       "Save `ncclras -v` twice, some seconds apart, with dumps and logs, and run `rollcall "
       "analyze FOLDER`.",
       "NVIDIA/nccl src/ras/client_support.cc, v2.27.7-1"},
      {"ras-missing-data",
       {"Missing communicator data from", "", ""},
       "NCCL's RAS: these processes or ranks did not answer its question in time.",
       "It does not say that they hang: RAS has a thread of its own, and a busy or slow host can "
       "be late. A process that stands still can answer.",
       "Ask again: `ncclras -v`. On the hosts in the list: `rollcall stacks PID`.",
       "NVIDIA/nccl src/ras/client_support.cc, v2.27.7-1"},
      {"ras-dead",
       {"considered dead (unreachable via the RAS network)", "", ""},
       "NCCL's RAS: it has lost these processes. They ended, or their host is not reachable.",
       "RAS uses a network of its own, over sockets. It is no proof that the process has ended.",
       "Check these processes on their hosts, and why they ended: `dmesg`, the end of their logs.",
       "NVIDIA/nccl src/ras/client_support.cc, v2.27.7-1"},
      // Gloo.
      {"gloo-timeout",
       {"gloo", "Timed out waiting", "operation to complete"},
       "Gloo on this rank waited for another rank in a barrier or collective on the CPU, and gave "
       "up.",
       "This rank waited. It is not a fault of the network by itself: the other rank did not come.",
       "`rollcall run --on-hang=observe -- CMD...` and `rollcall stacks PID` show where the other "
       "ranks are. Let no rank do long work alone before a barrier.",
       "pytorch/gloo gloo/transport/tcp/unbound_buffer.cc"},
      {"gloo-connection-closed",
       {"gloo", "Connection closed by peer [", ""},
       "Gloo on this rank: the rank at the address in the line closed its connection. Mostly its "
       "process has ended.",
       "It looks like the network, but mostly the other rank failed first.",
       "Find the rank at that address, and the rank with the earliest error in all logs.",
       "PyTorch documentation of torch.distributed, example of monitored_barrier()"},
      // Data loaders and shared memory of PyTorch.
      {"dataloader-bus-error",
       {"Unexpected bus error encountered in worker", "", ""},
       "PyTorch's data loader: signal 7 (SIGBUS) came to one of its workers.",
       "\"insufficient shared memory\" is a guess that PyTorch prints each time. If /dev/shm has "
       "room, look elsewhere.",
       "`df -h /dev/shm` while the job runs. In a container: --shm-size or --ipc=host.",
       "pytorch/pytorch torch/csrc/DataLoader.cpp"},
      {"dataloader-killed",
       {"DataLoader worker (pid", "is killed by signal", ""},
       "PyTorch's data loader on this rank: the signal in the line ended one of its workers.",
       "\"Killed\" is not a fault of the data: mostly the out-of-memory killer. Only this rank "
       "fails. The others wait for it.",
       "Killed: `dmesg -T | grep -i 'killed process'`, fewer workers. Bus error: `df -h /dev/shm`.",
       "pytorch/pytorch torch/csrc/DataLoader.cpp and torch/utils/data/_utils/signal_handling.py"},
      {"dataloader-exited",
       {"DataLoader worker (pid(s)", "exited unexpectedly", ""},
       "PyTorch's data loader on this rank: workers have ended, and it waited for a batch from "
       "them.",
       "The traceback is that of the rank and does not say why the worker ended.",
       "`dmesg -T | grep -i 'killed process'` for these pids, and the lines of the workers above. "
       "num_workers=0 shows an exception in the data set.",
       "pytorch/pytorch torch/utils/data/dataloader.py, _try_get_data()"},
      {"torch-shm-full",
       {"unable to write to file </torch_", "No space left on device", ""},
       "PyTorch: there is no room in /dev/shm for a tensor that two processes share, mostly a "
       "data loader's batch.",
       "No disk is full. It is the limit of /dev/shm, in a container often 64 MiB.",
       "`df -h /dev/shm` in the container. Use --shm-size or --ipc=host, or fewer workers.",
       "pytorch/pytorch aten/src/ATen/MapAllocator.cpp"},
      // Inference engines and Ray.
      {"vllm-no-broadcast-block",
       {"No available shared memory broadcast block found in", "", ""},
       "vLLM: for 60 s the process in the line has got no message or no free slot in the queue "
       "between the engine and its workers.",
       "It is no lack of shared memory, and no error at the start: loading and compilation take "
       "minutes. While requests run it is a sign of a hang.",
       "`rollcall stacks PID` for the engine and all workers: look for the worker that is not in "
       "its loop. See which worker printed an error first.",
       "vllm-project/vllm vllm/distributed/device_communicators/shm_broadcast.py; issue 27313"},
      {"vllm-rpc-timeout",
       {"TimeoutError: RPC call to", "timed out", ""},
       "vLLM: the engine gave its workers a step, and not all of them answered in time.",
       "The engine is not at fault. The worker that does not answer is often a victim, too: it "
       "waits in a collective for another worker.",
       "Start the server under `rollcall run --on-hang=observe -- CMD...`, which names the "
       "worker. While it hangs: `rollcall stacks PID` for each worker.",
       "vllm-project/vllm vllm/v1/executor/multiproc_executor.py, collective_rpc()"},
      {"vllm-worker-died",
       {"Worker proc", "died unexpectedly", "shutting down executor"},
       "vLLM: the process of the worker in the line ended, and vLLM shuts down the others.",
       "It is the worker that vLLM saw first. If PyTorch's watchdog ended it, it waited for "
       "another worker.",
       "Read the end of this worker's log. Without an error there: `dmesg` for the out-of-memory "
       "killer and for Xid.",
       "vllm-project/vllm vllm/v1/executor/multiproc_executor.py"},
      {"vllm-engine-fatal",
       {"EngineCore encountered a fatal error", "", ""},
       "vLLM: the engine's process ends after an exception. The traceback follows.",
       "The exception is often only the report of a worker that failed or did not answer.",
       "Read the last line of the traceback, then the first error of the workers.",
       "vllm-project/vllm vllm/v1/engine/core.py"},
      {"sglang-watchdog",
       {"watchdog timeout (self.watchdog_timeout=", "", ""},
       "SGLang: the process in the line has finished no batch for this time. Without soft=True "
       "SGLang then ends the server.",
       "This rank may only wait for another one in a collective. A slow first compilation gives "
       "the same line.",
       "SGLang prints stacks above the line: compare those of all ranks. Or start the server "
       "under `rollcall run --on-hang=observe -- CMD...`.",
       "sgl-project/sglang python/sglang/srt/utils/watchdog.py, commit 005c64c712dc"},
      {"ray-actor-died",
       {"The actor died unexpectedly before finishing this task", "", ""},
       "Ray: the process of the actor in the line ended before its task was done.",
       "Ray did not end it by itself, as a rule. \"connection error code 2. End of file\" only "
       "says that the process is gone.",
       "Read the actor's own log (worker-*.err below /tmp/ray/session_latest/logs) and `dmesg` on "
       "its host for the out-of-memory killer.",
       "ray-project/ray python/ray/exceptions.py"},
      {"ray-worker-died",
       {"A worker died or was killed while executing a task", "", ""},
       "Ray: a worker process ended while it ran a task.",
       "\"unexpected system error\" is not a diagnosis. Mostly the process crashed or was killed "
       "for its memory.",
       "Read the worker's log below /tmp/ray/session_latest/logs, and `dmesg` on its host for the "
       "out-of-memory killer.",
       "ray-project/ray src/ray/raylet/node_manager.cc"},
      // The kernel.
      {"kernel-cgroup-oom",
       {"Memory cgroup out of memory: Killed process", "", ""},
       "The kernel killed this process, because its container or batch job reached its memory "
       "limit.",
       "The host may have much free memory, and the GPU's memory has no part in it. The victim "
       "need not be the process that grew.",
       "Raise the limit, or use less host memory: fewer workers, no model loaded by every rank at "
       "once. Compare the pid with the ranks.",
       "torvalds/linux mm/oom_kill.c, __oom_kill_process()"},
      {"kernel-oom",
       {"Out of memory: Killed process", "", ""},
       "The kernel killed this process, because the host had no memory left.",
       "The victim need not be the process that grew. Timeouts on other ranks and hosts are the "
       "consequence.",
       "Compare the pid with the ranks. Use less host memory: fewer workers, no model loaded by "
       "every rank at once.",
       "torvalds/linux mm/oom_kill.c, __oom_kill_process()"},
      {"kernel-hung-task",
       {"INFO: task", "blocked for more than", "seconds"},
       "The kernel: this task has been in state D for this time. It waits in the kernel, mostly "
       "for a disk, a file server or a driver.",
       "It is not a rank that waits in NCCL: such a rank is not in state D. No signal ends the "
       "task until the wait ends.",
       "The stack below the line shows what it waits for. Check the mounts and the server. "
       "`rollcall stacks PID` shows the rank's own stack.",
       "torvalds/linux kernel/hung_task.c, commit 00b5cdeb9fe7"},
      {"kernel-nfs",
       {"nfs: server", "not responding", ""},
       "The kernel: the NFS server does not answer. All processes that read or write there wait "
       "until it does.",
       "The rank that stands still is a victim. \"still trying\" can go on for ever, and the "
       "other ranks wait for this rank in NCCL.",
       "Check the server and the network to it: `nfsstat -c`, `mount`, `dmesg -T`. Do not put "
       "checkpoints in the way of all ranks.",
       "torvalds/linux net/sunrpc/clnt.c"},
      // Last, because a line with one of these often has a more exact text, too.
      {"torch-watchdog-thread-ended",
       {"watchdog thread terminated with exception", "", ""},
       "PyTorch's watchdog thread on this rank ended with the exception in the line, and the "
       "process ends with it.",
       "The watchdog is not the cause. It is the first that saw the error. With a CUDA error the "
       "cause is an earlier kernel.",
       "Read the text after the colon. Then compare the time with the first errors of all other "
       "ranks.",
       "pytorch/pytorch torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, Watchdog::run()"},
      {"cpp-terminate",
       {"terminate called after throwing an instance of", "", ""},
       "The C++ runtime ends the process, because nothing caught an exception. The line "
       "\"what():\" below it gives the text.",
       "It is not a bug of the C++ runtime, and with c10::DistBackendError mostly not of this "
       "rank: PyTorch's watchdog ends a rank in this way after a timeout.",
       "Read the line \"what():\" and give it to `rollcall explain`.",
       "gcc-mirror/gcc libstdc++-v3/libsupc++/vterminate.cc"},
      {"python-fatal",
       {"Fatal Python error:", "", ""},
       "Python's fault handler: a signal ends the process. The stacks of its Python threads "
       "follow.",
       "The Python line on top is where the thread was. The fault itself is in native code below "
       "it.",
       "\"Aborted\": look for the lines of PyTorch's watchdog above. Otherwise the core dump: "
       "`coredumpctl gdb`.",
       "python/cpython Modules/faulthandler.c"},
  };
  return rows;
}

const Explanation* FindExplanation(std::string_view line) {
  const std::string lower = Lower(line.substr(0, kLongestLine));
  const std::vector<LowerTexts>& all = AllLowerTexts();
  for (size_t i = 0; i < all.size(); ++i) {
    if (HasInOrder(lower, all[i])) return &Explanations()[i];
  }
  return nullptr;
}

}  // namespace rollcall
