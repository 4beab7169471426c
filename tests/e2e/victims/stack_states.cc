// SPDX-License-Identifier: Apache-2.0
// A rank with a thread in every state in which a tool can take a stack. The threads check for the
// effects of a tool: a changed errno, a call that a signal ended, a wrong result.
//
//   stack_states MODE      "quiet": all threads stand still; "busy": most never do
//
// Prints "ready". For each line on stdin, prints "noticed N" and the effects.
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <string>

#include "tests/support/job.h"

#define NOINLINE __attribute__((noinline))

namespace states {

std::atomic<int> noticed{0};
std::atomic<const char*> last{""};
std::atomic<int> started{0};
int silent_pipe[2];
sem_t never;

// So that no call is the last thing a function does.
NOINLINE void KeepFrame() { __asm__ volatile(""); }

void Notice(const char* what) {
  noticed.fetch_add(1);
  last.store(what);
}

NOINLINE void StandInFutex() {
  if (sem_wait(&never) != 0) Notice("sem_wait was interrupted");
  KeepFrame();
}

NOINLINE void StandInRead() {
  char byte;
  if (read(silent_pipe[0], &byte, 1) != 1) Notice("read was interrupted");
  KeepFrame();
}

NOINLINE void StandInNanosleep() {
  const timespec long_time = {100000, 0};
  if (nanosleep(&long_time, nullptr) != 0) Notice("nanosleep was interrupted");
  KeepFrame();
}

NOINLINE void StandInPoll() {
  pollfd wait = {silent_pipe[0], POLLIN, 0};
  if (poll(&wait, 1, -1) != 1) Notice("poll was interrupted");
  KeepFrame();
}

NOINLINE void StandInEpoll() {
  const int set = epoll_create1(0);
  epoll_event event = {};
  if (epoll_wait(set, &event, 1, -1) != 1) Notice("epoll_wait was interrupted");
  KeepFrame();
}

NOINLINE void StandInSelect() {
  fd_set set;
  FD_ZERO(&set);
  FD_SET(silent_pipe[0], &set);
  if (select(silent_pipe[0] + 1, &set, nullptr, nullptr, nullptr) != 1) {
    Notice("select was interrupted");
  }
  KeepFrame();
}

NOINLINE void StandInSigwait() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  siginfo_t info;
  if (sigwaitinfo(&set, &info) != SIGUSR2) Notice("sigwaitinfo was interrupted");
  KeepFrame();
}

NOINLINE void StandInPause() {
  pause();
  Notice("pause was interrupted");
}

NOINLINE void StandWithSignalsBlocked() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  StandInFutex();
}

NOINLINE void StandInHandler() { StandInFutex(); }
void OnSignal(int) { StandInHandler(); }
NOINLINE void RaiseSignal() {
  raise(SIGUSR1);
  KeepFrame();
}

NOINLINE int Recurse(int depth) {
  char local[64];
  memset(local, depth, sizeof(local));
  __asm__ volatile("" : : "r"(local) : "memory");
  if (depth == 0) {
    StandInFutex();
    return 0;
  }
  return Recurse(depth - 1) + local[3];
}
NOINLINE void StandDeep() {
  Recurse(5000);
  KeepFrame();
}

struct Locked {
  ~Locked() { StandInFutex(); }  // an exception is in flight
};
NOINLINE void ThrowThroughAWait() {
  try {
    const Locked locked;
    throw std::runtime_error("in flight");
  } catch (const std::exception&) {
    Notice("the exception arrived");
  }
}

NOINLINE void Spin() {
  errno = 77;
  double value = 1;
  while (true) {
    for (int i = 0; i < 1000; ++i) value = value * 1.0000001 + 1e-9;
    if (errno != 77) {
      Notice("errno changed");
      errno = 77;
    }
    if (value > 1e300) value = 1;
  }
}

NOINLINE void Allocate() {
  errno = 78;
  for (size_t size = 1;; size = size * 7 % 100003 + 1) {
    char* memory = static_cast<char*>(malloc(size));
    memory[0] = memory[size - 1] = 'x';
    __asm__ volatile("" : : "r"(memory) : "memory");
    free(memory);
    if (errno != 78) {
      Notice("errno changed in malloc");
      errno = 78;
    }
  }
}

NOINLINE void OpenLibraries() {
  while (true) {
    void* library = dlopen("libm.so.6", RTLD_NOW);
    if (library == nullptr) Notice("dlopen failed");
    dlclose(library);
  }
}

NOINLINE void ThrowAndCatch() {
  while (true) {
    try {
      throw std::runtime_error(std::string(100, 'x'));
    } catch (const std::runtime_error& error) {
      if (strlen(error.what()) != 100) Notice("another exception");
    }
  }
}

NOINLINE void Print() {
  FILE* file = fopen("/dev/null", "w");
  while (true) {
    if (fprintf(file, "%d %s\n", 12345, "text") != 11) Notice("fprintf wrote less");
  }
}

NOINLINE void CreateThreads() {
  while (true) {
    pthread_t thread;
    const auto nothing = [](void*) -> void* { return nullptr; };
    if (pthread_create(&thread, nullptr, nothing, nullptr) != 0) continue;
    pthread_join(thread, nullptr);
  }
}

NOINLINE void WriteAndReadAPipe() {
  int ends[2];
  if (pipe(ends) != 0) return;
  char bytes[4096] = {};
  while (true) {
    if (write(ends[1], bytes, sizeof(bytes)) != sizeof(bytes)) Notice("write wrote less");
    if (read(ends[0], bytes, sizeof(bytes)) != sizeof(bytes)) Notice("read gave less");
  }
}

struct Role {
  const char* name;
  void (*run)();
};
const Role kQuiet[] = {
    {"futex", StandInFutex},     {"read", StandInRead},   {"nanosleep", StandInNanosleep},
    {"poll", StandInPoll},       {"epoll", StandInEpoll}, {"select", StandInSelect},
    {"sigwait", StandInSigwait}, {"pause", StandInPause}, {"blocked", StandWithSignalsBlocked},
    {"handler", RaiseSignal},    {"deep", StandDeep},     {"exception", ThrowThroughAWait}};
const Role kBusy[] = {{"futex", StandInFutex},
                      {"read", StandInRead},
                      {"nanosleep", StandInNanosleep},
                      {"poll", StandInPoll},
                      {"spin", Spin},
                      {"malloc", Allocate},
                      {"dlopen", OpenLibraries},
                      {"throw", ThrowAndCatch},
                      {"print", Print},
                      {"create", CreateThreads},
                      {"pipe", WriteAndReadAPipe}};

void* RunRole(void* argument) {
  const Role* role = static_cast<const Role*>(argument);
  pthread_setname_np(pthread_self(), role->name);
  started.fetch_add(1);
  role->run();
  return nullptr;
}

template <size_t N>
void StartAll(const Role (&roles)[N]) {
  for (const Role& role : roles) {
    pthread_t thread;
    pthread_create(&thread, nullptr, RunRole, const_cast<Role*>(&role));
  }
  while (started.load() != static_cast<int>(N)) sched_yield();
}

void MakeCommunicator() {
  ncclUniqueId id;
  ncclComm_t comm;
  CHECK_NCCL(ncclGetUniqueId(&id));
  CHECK_NCCL(ncclCommInitRank(&comm, 1, id, 0));
}

}  // namespace states

int main(int, char** argv) {
  using namespace states;
  sem_init(&never, 0, 0);
  if (pipe(silent_pipe) != 0) return 1;
  sigset_t usr2;
  sigemptyset(&usr2);
  sigaddset(&usr2, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &usr2, nullptr);
  signal(SIGUSR1, OnSignal);
  MakeCommunicator();
  if (strcmp(argv[1], "busy") == 0) {
    StartAll(kBusy);
  } else {
    StartAll(kQuiet);
  }
  puts("ready");
  fflush(stdout);
  char line[16];
  while (fgets(line, sizeof(line), stdin) != nullptr) {
    printf("noticed %d %s\n", noticed.load(), last.load());
    fflush(stdout);
  }
  return 0;
}
