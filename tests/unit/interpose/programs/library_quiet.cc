// SPDX-License-Identifier: Apache-2.0
// Makes 100,000 calls of each kind and counts their system calls, allocations and
// locks. For tests of the preloaded library; the stub NCCL makes none of these.
//
//     library_quiet       says "KIND SYSTEM_CALLS ALLOCATIONS LOCKS" for each kind, on stderr
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "interpose/nccl_api.h"

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
}

namespace {

constexpr int kCalls = 100'000;

volatile long system_calls = 0, allocations = 0, locks = 0;
int (*real_lock)(pthread_mutex_t*) = nullptr;

void OnSystemCall(int, siginfo_t*, void*) { system_calls = system_calls + 1; }

// Every system call but those that end the process, print, and return from the
// handler is turned into a signal, and not made.
void CountSystemCalls() {
  struct sigaction action = {};
  action.sa_sigaction = OnSystemCall;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSYS, &action, nullptr);
  const auto allow = [](unsigned number) {
    return sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
  };
  const sock_filter pass = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      allow(SYS_write),
      pass,
      allow(SYS_rt_sigreturn),
      pass,
      allow(SYS_exit_group),
      pass,
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
  };
  sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    perror("library_quiet: seccomp");
    _exit(3);
  }
}

void Print(const char* kind) {
  char line[200];
  const int length =
      snprintf(line, sizeof(line), "%s %ld %ld %ld\n", kind, system_calls, allocations, locks);
  if (write(STDERR_FILENO, line, static_cast<size_t>(length)) != length) _exit(4);
}

template <typename Call>
void Count(const char* kind, Call call) {
  system_calls = allocations = locks = 0;
  for (int i = 0; i < kCalls; ++i) {
    if (call() != 0) _exit(5);
  }
  Print(kind);
}

}  // namespace

extern "C" {
void* malloc(size_t size) {
  allocations = allocations + 1;
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  allocations = allocations + 1;
  return __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) {
  allocations = allocations + 1;
  return __libc_realloc(memory, size);
}
int pthread_mutex_lock(pthread_mutex_t* mutex) {
  locks = locks + 1;
  return real_lock == nullptr ? 0 : real_lock(mutex);
}
}

int main() {
  real_lock = reinterpret_cast<int (*)(pthread_mutex_t*)>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  ncclUniqueId id;
  ncclComm_t first = nullptr, second = nullptr;
  ncclGetUniqueId(&id);
  ncclCommInitRank(&first, 2, id, 0);
  ncclGetUniqueId(&id);
  ncclCommInitRank(&second, 2, id, 0);
  float buffer[8] = {};
  const auto all_reduce = [&](ncclComm_t comm) {
    return ncclAllReduce(buffer, buffer, 8, ncclFloat, ncclSum, comm, nullptr);
  };
  const auto send = [&] { return ncclSend(buffer, 8, ncclFloat, 1, first, nullptr); };
  const auto group = [&] {
    int result = ncclGroupStart();
    for (int i = 0; i < 4; ++i) result |= all_reduce(i % 2 == 0 ? first : second) | send();
    return result | ncclGroupEnd();
  };
  const auto wait = [&] { return static_cast<int>(cudaStreamSynchronize(nullptr)); };
  const auto query = [&] {
    ncclResult_t error;
    return ncclCommGetAsyncError(first, &error);
  };
  // What only the first call of a thread does, and the loader's binding.
  group();
  wait();
  query();
  free(malloc(8));  // and the heap's start
  CountSystemCalls();
  // The counters count.
  system_calls = allocations = locks = 0;
  syscall(SYS_getppid);
  free(malloc(8));
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  Print("counters");
  Count("collective", [&] { return all_reduce(first); });
  Count("two_communicators", [&, i = 0]() mutable { return all_reduce(i++ % 2 ? first : second); });
  Count("send", send);
  Count("group_of_8", group);
  Count("gpu_wait", wait);
  Count("async_error", query);
  _exit(0);
}
