// SPDX-License-Identifier: Apache-2.0
// An NCCL program whose arguments are its steps, for tests of the preloaded library.
// It uses nothing of the library. A step is a word, or WORD=ARGUMENTS with
// commas between the arguments; "!" before it says that it must fail.
//
// Communicators have numbers in the order of their creation. "on=N" makes the Nth current, and a
// new one is current at once. In "fork ... join" and "thread ... join" a child process or another
// thread takes the steps between, and the program waits for it. In "apart ... join" another thread
// takes the steps, and the program goes on. "met" waits until the stub holds the call of the newest
// thread (STUB_BLOCK). "let_go=N" ends the wait of the Nth thread, and waits for the thread's end.
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "interpose/nccl_api.h"
#include "interpose/rollcall.h"

extern "C" int hipGraphLaunch(void* executable, void* stream);

namespace {

using Arguments = std::vector<int>;
using Step = std::function<int(const Arguments&)>;

ncclUniqueId unique_id;
std::vector<ncclComm_t> comms;
ncclComm_t comm = nullptr;
float buffer[64];

int At(const Arguments& arguments, size_t index, int fallback) {
  return index < arguments.size() ? arguments[index] : fallback;
}

size_t Count(const Arguments& arguments) { return static_cast<size_t>(At(arguments, 0, 8)); }

// The handles of communicators created within a group come later, so each handle has
// a fixed place.
ncclComm_t* NewPlace() {
  comms.reserve(4096);
  comms.push_back(nullptr);
  return &comms.back();
}

int Keep(ncclComm_t* place, int result) {
  comm = *place;
  return result;
}

int Init(const Arguments& a) {
  ncclComm_t* place = NewPlace();
  return Keep(place, ncclCommInitRank(place, At(a, 0, 1), unique_id, At(a, 1, 0)));
}

// A call with a tag, in a configuration of NCCL 2.31, which other headers may not have.
int Tagged(const Arguments& a) {
  uint64_t config[9] = {sizeof(config), 0xcafebeef};
  config[7] = static_cast<uint64_t>(At(a, 0, 0));
  return ncclAllReduceConfig(buffer, buffer, 8, ncclFloat, ncclSum, comm, nullptr,
                             reinterpret_cast<const ncclCollConfig_t*>(config));
}

int InitConfig(const Arguments& a) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = At(a, 2, 1);
  ncclComm_t* place = NewPlace();
  return Keep(place, ncclCommInitRankConfig(place, At(a, 0, 1), unique_id, At(a, 1, 0), &config));
}

int InitScalable(const Arguments& a) {
  ncclComm_t* place = NewPlace();
  return Keep(place,
              ncclCommInitRankScalable(place, At(a, 0, 1), At(a, 1, 0), 1, &unique_id, nullptr));
}

int InitAll(const Arguments& a) {
  ncclComm_t* place = NewPlace();
  for (int i = 1; i < At(a, 0, 1); ++i) NewPlace();
  return Keep(place, ncclCommInitAll(place, At(a, 0, 1), nullptr));
}

int Split(const Arguments& a) {
  ncclComm_t* place = NewPlace();
  const ncclComm_t parent = comm;
  return Keep(place, ncclCommSplit(parent, At(a, 0, 0), 0, place, nullptr));
}

int Shrink(const Arguments& a) {
  ncclComm_t* place = NewPlace();
  Arguments excluded = a;
  const ncclComm_t parent = comm;
  return Keep(place, ncclCommShrink(parent, excluded.data(), static_cast<int>(excluded.size()),
                                    place, nullptr, NCCL_SHRINK_DEFAULT));
}

int Grow(const Arguments& a) {
  ncclComm_t* place = NewPlace();
  const ncclComm_t parent = comm;
  return Keep(place, ncclCommGrow(parent, At(a, 0, 2), nullptr, -1, place, nullptr));
}

int GrowAsRoot(const Arguments& a) {
  ncclComm_t* place = NewPlace();
  const ncclComm_t parent = comm;
  return Keep(place, ncclCommGrow(parent, At(a, 0, 2), &unique_id, -1, place, nullptr));
}

// Size, rank: as one that joins.
int GrowInto(const Arguments& a) {
  ncclComm_t* place = NewPlace();
  return Keep(place, ncclCommGrow(nullptr, At(a, 0, 2), &unique_id, At(a, 1, 1), place, nullptr));
}

// Peer, signals, signal index; and again, for the next one.
int WaitSignal(const Arguments& a) {
  std::vector<ncclWaitSignalDesc_t> wanted;
  for (size_t i = 0; i < a.size(); i += 3) {
    wanted.push_back({At(a, i + 1, 1), At(a, i, 0), At(a, i + 2, 0), 0});
  }
  return ncclWaitSignal(static_cast<int>(wanted.size()), wanted.data(), comm, nullptr);
}

// A child in this process's memory ends, or becomes another program.
int VforkAndEnd() {
  const pid_t child = vfork();
  if (child == 0) _exit(0);
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}
int VforkAndBecomeAnother() {
  const pid_t child = vfork();
  if (child == 0) {
    execl("/bin/true", "true", nullptr);
    _exit(1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

// The nth CPU that this process may use, modulo their number.
int MoveToCpu(const Arguments& a) {
  static cpu_set_t allowed;
  if (CPU_COUNT(&allowed) == 0) sched_getaffinity(0, sizeof(allowed), &allowed);
  int left = At(a, 0, 0) % CPU_COUNT(&allowed);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || left-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    return sched_setaffinity(0, sizeof(one), &one);
  }
  return -1;
}

int UseUpDescriptors(const Arguments&) {
  while (open("/dev/null", O_RDONLY) >= 0) {
  }
  return 0;
}

int SetShape(const Arguments& a) {
  const std::vector<int64_t> sizes(a.begin(), a.end());
  RollcallShape(static_cast<int>(sizes.size()), sizes.data());
  return 0;
}

// Graphs and executable graphs are numbered as they come, from 0.
std::vector<cudaGraph_t> graphs;
std::vector<cudaGraphExec_t> executables;

int EndCapture(const Arguments&) {
  graphs.emplace_back();
  return cudaStreamEndCapture(nullptr, &graphs.back());
}

int Instantiate(const Arguments& a) {
  executables.emplace_back();
  return cudaGraphInstantiate(&executables.back(), graphs.at(static_cast<size_t>(At(a, 0, 0))), 0);
}

int InstantiateByDriver(const Arguments& a) {
  executables.emplace_back();
  return cuGraphInstantiateWithFlags(&executables.back(),
                                     graphs.at(static_cast<size_t>(At(a, 0, 0))), 0);
}

int Clone(const Arguments& a) {
  graphs.emplace_back();
  return cudaGraphClone(&graphs.back(), graphs.at(static_cast<size_t>(At(a, 0, 0))));
}

cudaGraph_t GraphAt(const Arguments& a, size_t i) {
  return graphs.at(static_cast<size_t>(At(a, i, 0)));
}
cudaGraphExec_t ExecutableAt(const Arguments& a, size_t i) {
  return executables.at(static_cast<size_t>(At(a, i, 0)));
}

int ManyCalls(const Arguments& a) {
  int result = ncclSuccess;
  for (int i = 0; i < At(a, 0, 0) && result == ncclSuccess; ++i) {
    result =
        ncclAllReduce(buffer, buffer, static_cast<size_t>(i), ncclFloat, ncclSum, comm, nullptr);
  }
  return result;
}

// Threads that take steps apart, and what holds their calls, as they come.
std::vector<std::thread> apart;
std::vector<int> holds;

int Meet(const Arguments&) {
  // Opening it for writing waits until a call has opened it for reading.
  holds.push_back(open(getenv("STUB_FIFO"), O_WRONLY | O_CLOEXEC));
  return holds.back() < 0;
}

int LetGo(const Arguments& a) {
  const auto which = static_cast<size_t>(At(a, 0, 0));
  close(holds.at(which));
  apart.at(which).join();
  return 0;
}

// Of this thread: handlers that ask for one run on it.
int SetSignalStack(const Arguments& a) {
  stack_t stack = {};
  stack.ss_size = Count(a);
  stack.ss_sp = malloc(stack.ss_size);
  return sigaltstack(&stack, nullptr);
}

// From now on the kernel kills this process for such a system call.
int Forbid(unsigned call) {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0;
}

// A thread with a stack of so many bytes waits for the GPU, apart.
int WaitInSmallThread(const Arguments& a) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, Count(a));
  pthread_t thread;
  const auto wait = [](void*) -> void* {
    cudaStreamSynchronize(nullptr);
    return nullptr;
  };
  return pthread_create(&thread, &attributes, wait, nullptr);
}

int AsyncError(const Arguments&) {
  ncclResult_t error;
  return ncclCommGetAsyncError(comm, &error);
}

#define CALL(...)                 \
  [](const Arguments& a) -> int { \
    static_cast<void>(a);         \
    return __VA_ARGS__;           \
  }

const std::map<std::string, Step> kCollectives = {
    {"all_reduce",
     CALL(ncclAllReduce(buffer, buffer, Count(a), ncclFloat, ncclSum, comm, nullptr))},
    {"all_gather", CALL(ncclAllGather(buffer, buffer, Count(a), ncclFloat, comm, nullptr))},
    {"reduce_scatter",
     CALL(ncclReduceScatter(buffer, buffer, Count(a), ncclFloat, ncclMax, comm, nullptr))},
    {"reduce",
     CALL(ncclReduce(buffer, buffer, Count(a), ncclFloat, ncclSum, At(a, 1, 0), comm, nullptr))},
    {"broadcast",
     CALL(ncclBroadcast(buffer, buffer, Count(a), ncclInt, At(a, 1, 0), comm, nullptr))},
    {"bcast", CALL(ncclBcast(buffer, Count(a), ncclInt, At(a, 1, 0), comm, nullptr))},
    {"all_to_all", CALL(ncclAlltoAll(buffer, buffer, Count(a), ncclFloat, comm, nullptr))},
    {"gather", CALL(ncclGather(buffer, buffer, Count(a), ncclFloat, At(a, 1, 0), comm, nullptr))},
    {"scatter", CALL(ncclScatter(buffer, buffer, Count(a), ncclFloat, At(a, 1, 0), comm, nullptr))},
    {"send", CALL(ncclSend(buffer, Count(a), ncclFloat, At(a, 1, 0), comm, nullptr))},
    {"recv", CALL(ncclRecv(buffer, Count(a), ncclFloat, At(a, 1, 0), comm, nullptr))},
};

const std::map<std::string, Step> kOthers = {
    {"id", CALL(ncclGetUniqueId(&unique_id))},
    {"init", Init},
    {"init_config", InitConfig},
    {"init_scalable", InitScalable},
    {"init_all", InitAll},
    {"split", Split},
    {"shrink", Shrink},
    {"async_error", AsyncError},
    {"grow_id", [](const Arguments&) -> int { return ncclCommGetUniqueId(comm, &unique_id); }},
    {"grow", Grow},
    {"grow_as_root", GrowAsRoot},
    {"grow_into", GrowInto},
    {"all_reduce_config", CALL(ncclAllReduceConfig(buffer, buffer, Count(a), ncclFloat, ncclSum,
                                                   comm, nullptr, nullptr))},
    {"tagged", Tagged},
    {"all_to_all_v", CALL(ncclAllToAllv(buffer, nullptr, nullptr, buffer, nullptr, nullptr,
                                        ncclFloat, comm, nullptr))},
    {"msccl", CALL(mscclRunAlgo(buffer, nullptr, nullptr, buffer, nullptr, nullptr, Count(a),
                                ncclFloat, 0, 0, ncclSum, 1, comm, nullptr))},
    {"window", CALL(ncclCommWindowRegister(comm, buffer, Count(a), nullptr, 0))},
    {"end_window", CALL(ncclCommWindowDeregister(comm, nullptr))},
    {"device_comm", CALL(ncclDevCommCreate(comm, nullptr, nullptr))},
    {"put_signal", CALL(ncclPutSignal(buffer, 8, ncclFloat, At(a, 0, 0), nullptr, 0, At(a, 1, 0), 0,
                                      0, comm, nullptr))},
    {"signal", CALL(ncclSignal(At(a, 0, 0), At(a, 1, 0), 0, 0, comm, nullptr))},
    {"wait_signal", WaitSignal},
    {"allocate", CALL(ncclMemAlloc(nullptr, 8))},
    {"finalize", CALL(ncclCommFinalize(comm))},
    {"destroy", CALL(ncclCommDestroy(comm))},
    {"abort", CALL(ncclCommAbort(comm))},
    {"revoke", CALL(ncclCommRevoke(comm, 0))},
    {"group_start", CALL(ncclGroupStart())},
    {"group_end", CALL(ncclGroupEnd())},
    {"simulate_end", CALL(ncclGroupSimulateEnd(nullptr))},
    {"stream_wait", CALL(cudaStreamSynchronize(nullptr))},
    {"event_wait", CALL(cudaEventSynchronize(nullptr))},
    {"device_wait", CALL(cudaDeviceSynchronize())},
    {"many", ManyCalls},
    {"capture", CALL(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal))},
    {"end_capture", EndCapture},
    {"instantiate", Instantiate},
    {"instantiate_by_driver", InstantiateByDriver},
    {"clone", Clone},
    {"update", CALL(cudaGraphExecUpdate(ExecutableAt(a, 0), GraphAt(a, 1), nullptr))},
    {"add_child",
     CALL(cudaGraphAddChildGraphNode(nullptr, GraphAt(a, 0), nullptr, 0, GraphAt(a, 1)))},
    {"launch", CALL(cudaGraphLaunch(ExecutableAt(a, 0), nullptr))},
    {"launch_by_driver", CALL(cuGraphLaunch(ExecutableAt(a, 0), nullptr))},
    {"hip_launch", CALL(hipGraphLaunch(ExecutableAt(a, 0), nullptr))},
    {"end_graph", CALL(cudaGraphDestroy(GraphAt(a, 0)))},
    {"end_executable", CALL(cudaGraphExecDestroy(ExecutableAt(a, 0)))},
    {"copy", CALL(cudaMemcpy(buffer, buffer + 8, 8, cudaMemcpyHostToHost))},
    {"driver_stream_wait", CALL(cuStreamSynchronize(nullptr))},
    {"driver_event_wait", CALL(cuEventSynchronize(nullptr))},
    {"context_wait", CALL(cuCtxSynchronize())},
    {"hip_stream_wait", CALL(hipStreamSynchronize(nullptr))},
    {"hip_event_wait", CALL(hipEventSynchronize(nullptr))},
    {"hip_device_wait", CALL(hipDeviceSynchronize())},
    {"hip_copy", CALL(hipMemcpy(buffer, buffer + 8, 8, 0))},
    {"step", CALL((RollcallStep(static_cast<uint64_t>(At(a, 0, 0))), 0))},
    {"validate", CALL((RollcallPhase("validation"), 0))},
    {"train", CALL((RollcallPhase(nullptr), 0))},
    {"long_phase", CALL((RollcallPhase(std::string(100, 'x').c_str()), 0))},
    {"shape", SetShape},
    {"name", CALL((RollcallName(comm, "tensor parallel"), 0))},
    {"on", CALL((comm = comms[static_cast<size_t>(At(a, 0, 0))], 0))},
    {"met", Meet},
    {"let_go", LetGo},
    {"set_errno", CALL((errno = At(a, 0, 0), 0))},
    {"errno_is", CALL(errno != At(a, 0, 0))},
    {"signal_stack", SetSignalStack},
    {"forbid_pread", CALL(Forbid(SYS_pread64))},
    {"forbid_reboot", CALL(Forbid(SYS_reboot))},
    {"wait_in_small_thread", WaitInSmallThread},
    {"use_up_descriptors", UseUpDescriptors},
    {"cpu", MoveToCpu},
    {"kill", CALL(kill(getpid(), SIGKILL))},
    {"exit", CALL((exit(At(a, 0, 0)), 0))},
    {"quick_exit", CALL((_exit(At(a, 0, 0)), 0))},
    {"vfork_exec", CALL(VforkAndBecomeAnother())},
    {"vfork_exit", CALL(VforkAndEnd())},
};

Arguments Parse(const std::string& text) {
  Arguments arguments;
  for (size_t at = 0; at < text.size();) {
    size_t used = 0;
    arguments.push_back(std::stoi(text.substr(at), &used));
    at += used + 1;
  }
  return arguments;
}

void Take(const std::string& text) {
  const bool must_fail = text[0] == '!';
  const std::string step = text.substr(must_fail ? 1 : 0);
  const size_t equals = step.find('=');
  const std::string word = step.substr(0, equals);
  const std::string rest = equals == std::string::npos ? "" : step.substr(equals + 1);
  if (word == "env") {  // env=NAME=VALUE
    const size_t second = rest.find('=');
    setenv(rest.substr(0, second).c_str(), rest.substr(second + 1).c_str(), 1);
    return;
  }
  const auto& table = kCollectives.count(word) != 0 ? kCollectives : kOthers;
  const auto found = table.find(word);
  if (found == table.end()) {
    fprintf(stderr, "library_steps: no step '%s'\n", word.c_str());
    exit(2);
  }
  const int result = found->second(Parse(rest));
  if ((result != ncclSuccess && result != ncclInProgress) != must_fail) {
    fprintf(stderr, "library_steps: %s gave %d\n", text.c_str(), result);
    exit(1);
  }
}

using Steps = std::vector<std::string>;

void TakeAll(const Steps& steps);

// Takes the steps from `begin` up to "join" elsewhere; returns where it stands.
size_t TakeElsewhere(const Steps& steps, size_t begin, const std::string& where) {
  size_t end = begin;
  while (end < steps.size() && steps[end] != "join") ++end;
  const Steps part(steps.begin() + static_cast<ptrdiff_t>(begin),
                   steps.begin() + static_cast<ptrdiff_t>(end));
  if (where == "apart") {
    apart.emplace_back([part] { TakeAll(part); });
    return end;
  }
  if (where == "thread") {
    std::thread([&part] { TakeAll(part); }).join();
    return end;
  }
  const pid_t child = fork();
  if (child == 0) {
    TakeAll(part);
    exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  if (status != 0) exit(3);
  return end;
}

void TakeAll(const Steps& steps) {
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i] == "fork" || steps[i] == "thread" || steps[i] == "apart") {
      i = TakeElsewhere(steps, i + 1, steps[i]);
    } else {
      Take(steps[i]);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  TakeAll({argv + 1, argv + argc});
  return 0;
}
