// SPDX-License-Identifier: Apache-2.0
// A process with one thread in each state that stack tests need. Prints "ready" when all threads
// run. Then 'c' on stdin prints the number of handled signals, and the end of stdin ends the
// process.
//
// Each thread has the name of its state, and waits below functions that the compiler may not inline
// or turn into tail calls, so that the frames are predictable.
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "victim_library.h"

#define NOINLINE __attribute__((noinline))

namespace victim {

std::atomic<int> started{0};
std::atomic<int> signals_handled{0};
std::atomic<unsigned> sink{0};
int never_written[2];
volatile bool forever = true;  // hides from the compiler that functions never return

// Call this after a call that must not become a tail call.
inline void KeepFrame() { asm volatile("" ::: "memory"); }

NOINLINE void WaitInFutex() {
  int word = 0;
  while (forever) syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
}

NOINLINE void ReadFromPipe() {
  char byte;
  while (read(never_written[0], &byte, 1) != 0) {
  }
}

NOINLINE void SleepLong() {
  const timespec day = {86400, 0};
  while (forever) nanosleep(&day, nullptr);
}

NOINLINE int Recurse(int depth) {
  if (depth == 0) {
    WaitInFutex();
    return 0;
  }
  const int result = Recurse(depth - 1);
  KeepFrame();
  return result + 1;
}

NOINLINE int RecurseWide(int depth) {
  volatile char wide[4096];
  wide[0] = static_cast<char>(depth);
  if (depth == 0) {
    WaitInFutex();
    return 0;
  }
  const int result = RecurseWide(depth - 1);
  return result + wide[0];
}

NOINLINE void BusyLoop() {
  while (forever) sink.fetch_add(1, std::memory_order_relaxed);
}

NOINLINE void ReadClock() {
  timespec now;
  while (forever) {
    clock_gettime(CLOCK_MONOTONIC, &now);
    sink.fetch_add(static_cast<unsigned>(now.tv_nsec), std::memory_order_relaxed);
  }
}

NOINLINE void CallThroughNull() {
  void (*volatile nothing)() = nullptr;
  nothing();
  KeepFrame();
}

// Tests look for the line of this call.
inline __attribute__((always_inline)) void InlinedCallee() {
  WaitInFutex();
  KeepFrame();
}

NOINLINE void CallInlined() {
  InlinedCallee();
  KeepFrame();
}

// The parent of a vfork waits in state D until the child ends.
NOINLINE void WaitForVfork() {
  const pid_t parent = getpid();
  if (vfork() == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(0);  // it was killed before that
    ReadFromPipe();
    _exit(0);
  }
}

NOINLINE void WaitInSignalHandler() { WaitInFutex(); }

void OnFault(int) {
  WaitInSignalHandler();
  KeepFrame();
}

void CountSignal(int) { signals_handled.fetch_add(1); }

struct Role {
  const char* name;
  void (*run)();
};

const Role kRoles[] = {
    {"futex", WaitInFutex},
    {"read", ReadFromPipe},
    {"nanosleep", SleepLong},
    {"recursion", [] { Recurse(40); }},
    {"wide", [] { RecurseWide(40); }},
    {"library", [] { victim_library_call(WaitInFutex); }},
    {"no unwind", [] { victim_no_unwind_call(WaitInFutex); }},
    {"debug frame", [] { victim_debug_frame_call(WaitInFutex); }},
    {"inlined", CallInlined},
    {"in (handler) x", CallThroughNull},
};
const Role kBusyRoles[] = {{"busy", BusyLoop}, {"vdso", ReadClock}};
const Role kVforkRole = {"vfork", WaitForVfork};

void* RunRole(void* argument) {
  const Role* role = static_cast<const Role*>(argument);
  pthread_setname_np(pthread_self(), role->name);
  started.fetch_add(1);
  role->run();
  return nullptr;
}

int Start(const Role& role) {
  pthread_t thread;
  pthread_create(&thread, nullptr, RunRole, const_cast<Role*>(&role));
  return 1;
}

int StartAll(const char* set, int futex_threads) {
  int count = 0;
  if (std::strcmp(set, "blocked") == 0) {
    for (const Role& role : kRoles) count += Start(role);
  }
  if (std::strcmp(set, "busy") == 0) {
    for (const Role& role : kBusyRoles) count += Start(role);
  }
  if (std::strcmp(set, "vfork") == 0) count += Start(kVforkRole);
  for (int i = 0; i < futex_threads; ++i) count += Start(kRoles[i % 4]);
  return count;
}

}  // namespace victim

// victim SET THREADS
int main(int argc, char** argv) {
  if (argc != 3 || pipe2(victim::never_written, O_CLOEXEC) != 0) return 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  struct sigaction fault = {};
  fault.sa_handler = victim::OnFault;
  sigaction(SIGSEGV, &fault, nullptr);
  struct sigaction counted = {};
  counted.sa_handler = victim::CountSignal;
  counted.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &counted, nullptr);
  const int count = victim::StartAll(argv[1], std::atoi(argv[2]));
  while (victim::started.load() < count) sched_yield();
  std::puts("ready");
  std::fflush(stdout);
  char command;
  while (read(0, &command, 1) == 1) {
    std::printf("%d\n", victim::signals_handled.load());
    std::fflush(stdout);
  }
  _exit(7);
}
