// SPDX-License-Identifier: Apache-2.0
// One process with one communicator of one rank runs a named scenario. library_test.cc
// preloads the library into it. It uses nothing of Rollcall.
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "tests/support/job.h"

namespace {

ncclComm_t comm;
cudaStream_t stream;
float* buffer;

void Init() {
  ncclUniqueId id;
  CHECK_NCCL(ncclGetUniqueId(&id));
  CHECK_NCCL(ncclCommInitRank(&comm, 1, id, 0));
  CHECK_CUDA(cudaStreamCreate(&stream));
  CHECK_CUDA(cudaMalloc(reinterpret_cast<void**>(&buffer), 4096));
}

void AllReduce(size_t count = 8) {
  CHECK_NCCL(ncclAllReduce(buffer, buffer, count, ncclFloat, ncclSum, comm, stream));
}

void Calls() {
  Init();
  for (int i = 0; i < 40; ++i) AllReduce();
  CHECK_NCCL(ncclBcast(buffer, 8, ncclFloat, 0, comm, stream));
  CHECK_CUDA(cudaStreamSynchronize(stream));
}

void OtherCalls() {
  Init();
  for (int i = 0; i < 40; ++i) AllReduce(i == 20 ? 16 : 8);
  CHECK_NCCL(ncclBroadcast(buffer, buffer, 8, ncclFloat, 0, comm, stream));
}

void Refused() {
  Init();
  AllReduce();
  const ncclResult_t result =
      ncclReduce(buffer, buffer, 8, ncclFloat, ncclSum, /*root=*/7, comm, stream);
  if (result == ncclSuccess) exit(1);
  AllReduce();
}

void OpenGroup() {
  Init();
  AllReduce();
  CHECK_NCCL(ncclGroupStart());
  AllReduce();
  AllReduce();
  kill(getpid(), SIGKILL);
}

void Group() {
  Init();
  CHECK_NCCL(ncclGroupStart());
  CHECK_NCCL(ncclGroupStart());
  AllReduce();
  AllReduce();
  CHECK_NCCL(ncclGroupEnd());
  CHECK_NCCL(ncclGroupEnd());
}

void Killed() {
  Init();
  AllReduce();
  kill(getpid(), SIGKILL);
}

void Split() {
  Init();
  ncclComm_t child = nullptr;
  CHECK_NCCL(ncclCommSplit(comm, 0, 0, &child, nullptr));
  CHECK_NCCL(ncclAllReduce(buffer, buffer, 8, ncclFloat, ncclSum, child, stream));
  CHECK_NCCL(ncclCommDestroy(child));
}

// More communicators than a small file can hold.
void ManySplits() {
  Init();
  for (int i = 0; i < 150; ++i) {
    ncclComm_t child = nullptr;
    CHECK_NCCL(ncclCommSplit(comm, 0, 0, &child, nullptr));
  }
  AllReduce();
}

// The child of a fork makes its own calls; NCCL itself must be loaded anew in it
// only by exec, so it runs this program again.
void Fork() {
  Init();
  AllReduce();
  for (int i = 0; i < 20; ++i) {
    const pid_t pid = fork();
    if (pid == 0) _exit(0);
    waitpid(pid, nullptr, 0);
  }
  AllReduce();
}

void Exec() {
  Init();
  AllReduce();
  execl("/proc/self/exe", "library_victim", "calls", static_cast<char*>(nullptr));
}

void Threads() {
  Init();
  std::thread([] { AllReduce(); }).join();
  std::thread([] { AllReduce(); }).join();
}

void KeepsErrno() {
  errno = 77;
  Init();
  errno = 78;
  AllReduce();
  CHECK_CUDA(cudaStreamSynchronize(stream));
  if (errno != 78) exit(3);
}

void Nothing() {}

// A feature probe must not find functions that NCCL lacks.
void Probe() {
  void* nccl = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (nccl == nullptr || dlsym(nccl, "ncclNoSuchFunction") != nullptr) exit(3);
  const char* error = dlerror();
  if (error == nullptr || strstr(error, "ncclNoSuchFunction") == nullptr) exit(4);
  if (dlsym(nccl, "ncclAllReduce") == nullptr) exit(5);
}

struct Scenario {
  const char* name;
  void (*run)();
};
constexpr Scenario kScenarios[] = {
    {"calls", Calls},
    {"other_calls", OtherCalls},
    {"refused", Refused},
    {"open_group", OpenGroup},
    {"group", Group},
    {"killed", Killed},
    {"split", Split},
    {"fork", Fork},
    {"many_splits", ManySplits},
    {"exec", Exec},
    {"threads", Threads},
    {"errno", KeepsErrno},
    {"nothing", Nothing},
    {"probe", Probe},
};

}  // namespace

int main(int argc, char** argv) {
  for (const Scenario& scenario : kScenarios) {
    if (argc > 1 && strcmp(argv[1], scenario.name) == 0) {
      scenario.run();
      return 0;
    }
  }
  return 2;
}
