// SPDX-License-Identifier: Apache-2.0
// A process with one thread for each kind of frame that is hard to unwind. Prints "ready" when all
// threads have started. The end of stdin ends the process.
//
//   frame_victim [endless]
//
// With `endless`, one thread only, which has hostile unwind information.
//
// Each thread has the name of its kind. RunRole() calls Outer(), and Outer() the functions of the
// kind.
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "assembly.h"
#include "victim_library.h"

#define NOINLINE __attribute__((noinline))

namespace victim {

std::atomic<int> started{0};
volatile bool forever = true;  // hides from the compiler that functions never return
volatile int rooms = 1500;     // hides sizes from the compiler
volatile char sink;
int poller;

// Call this after a call that must not become a tail call.
inline void KeepFrame() { asm volatile("" ::: "memory"); }

NOINLINE void WaitInFutex() {
  int word = 0;
  while (forever) syscall(SYS_futex, &word, 128, 0, nullptr, nullptr, 0);
}

// Waits in a call that a stop would end, so no process can read the registers of its thread.
NOINLINE void WaitInEpoll() {
  epoll_event event;
  const int poller = epoll_create1(EPOLL_CLOEXEC);
  while (forever) epoll_wait(poller, &event, 1, -1);
}

// The compiler finds this frame by the frame pointer, because of its size. No function that it
// calls saves the frame pointer.
NOINLINE void FrameOfAnySize(int timeout) {
  volatile char* room = static_cast<volatile char*>(alloca(rooms));
  epoll_event event;
  room[0] = 1;
  do {
    syscall(SYS_epoll_wait, poller, &event, 1, timeout);
  } while (forever && timeout < 0);
  sink = room[0];
}

NOINLINE void FixedFrameWithFramePointer() { victim_frame_pointer_call(WaitInEpoll); }

NOINLINE void CallFrameOfAnySize() {
  FrameOfAnySize(-1);
  KeepFrame();
}

NOINLINE void AlignedFrameOfAnySize() {
  alignas(64) volatile char aligned[64];
  volatile char* room = static_cast<volatile char*>(alloca(rooms));
  aligned[0] = 1;
  room[0] = aligned[0];
  epoll_event event;
  while (forever) syscall(SYS_epoll_wait, poller, &event, 1, -1);
  sink = aligned[0] + room[0];
}

// Leaves old frames of the same functions on the stack, where the frame of CallAmongOldFrames()
// will be.
NOINLINE void OldCaller() {
  FrameOfAnySize(0);
  KeepFrame();
}

NOINLINE void LeaveOldFrames(int depth) {
  volatile char wide[64];
  wide[0] = static_cast<char>(depth);
  OldCaller();
  if (depth > 0) LeaveOldFrames(depth - 1);
  sink = wide[0];
}

NOINLINE void CallAmongOldFrames() {
  LeaveOldFrames(6);
  rooms = 4000;
  FrameOfAnySize(-1);
  KeepFrame();
}

NOINLINE void WaitInHandler() { WaitInFutex(); }

void OnSignal(int) {
  WaitInHandler();
  KeepFrame();
}

struct KernelAction {
  void (*handler)(int);
  unsigned long flags;
  void (*restorer)();
  unsigned long mask;
};

constexpr unsigned long kHasRestorer = 0x04000000;

constexpr size_t kSignalStackBytes = 64 << 10;

void WaitOnSignalStack(void* memory) {
  stack_t stack = {};
  stack.ss_size = kSignalStackBytes;
  stack.ss_sp = memory;
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, nullptr);
  raise(SIGUSR1);
  KeepFrame();
}

NOINLINE void SignalOnAnotherStack() {
  WaitOnSignalStack(std::malloc(kSignalStackBytes));
  KeepFrame();
}

// As in a large heap: what lies above the signal's stack is more than an agent copies.
NOINLINE void SignalOnAStackInAHeap() {
  constexpr size_t kHeapBytes = 4 << 20;
  WaitOnSignalStack(mmap(nullptr, kHeapBytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
  KeepFrame();
}

NOINLINE void SignalWithoutUnwindInformation() {
  const KernelAction action = {OnSignal, kHasRestorer, assembly_restorer, 0};
  syscall(SYS_rt_sigaction, SIGUSR2, &action, nullptr, sizeof(action.mask));
  syscall(SYS_tkill, gettid(), SIGUSR2);
  KeepFrame();
}

NOINLINE void CallAssembly() {
  assembly_call(WaitInFutex);
  KeepFrame();
}

NOINLINE void CallAssemblyByPointer() {
  void (*volatile function)(void (*)()) = assembly_call;
  function(WaitInFutex);
  KeepFrame();
}

NOINLINE void CallAssemblyThatPolls() {
  assembly_call(WaitInEpoll);
  KeepFrame();
}

// The assembly overwrites the frame pointer, which finds this frame.
NOINLINE void CallAssemblyFromAnySize() {
  volatile char* room = static_cast<volatile char*>(alloca(rooms));
  room[0] = 1;
  assembly_call(WaitInFutex);
  sink = room[0];
}

void* old_return_address;

NOINLINE void KeepReturnAddress() { old_return_address = __builtin_return_address(0); }

NOINLINE void LargeFrame() {
  volatile char wide[256];
  wide[0] = 1;
  KeepReturnAddress();
  sink = wide[0];
}

// As CallAssemblyFromAnySize(), on a stack whose old words lead from LargeFrame() to an address
// without code.
NOINLINE void CallAssemblyAmongOldWords() {
  LargeFrame();
  volatile uintptr_t* room = static_cast<volatile uintptr_t*>(alloca(rooms));
  for (int i = 0; i < 16; ++i) {
    room[i] = i >= 3 && i % 2 == 1 ? reinterpret_cast<uintptr_t>(old_return_address) : 0;
  }
  for (int i = 16; i < static_cast<int>(rooms / sizeof(*room)); ++i) room[i] = 1;
  assembly_call(WaitInFutex);
  sink = static_cast<char>(room[0]);
}

// The call is the last instruction of the function.
NOINLINE void CallAssemblyForGood() { assembly_call_for_good(WaitInFutex); }

using Generated = void (*)(void (*)());

Generated Generate(const unsigned char* code, size_t size) {
  void* page =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memcpy(page, code, size);
  return reinterpret_cast<Generated>(page);
}

NOINLINE void CallGenerated() {
  // push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret
  const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
  Generate(code, sizeof(code))(WaitInFutex);
  KeepFrame();
}

NOINLINE void CallGeneratedWithoutFramePointer() {
  // push %rbp; sub $16,%rsp; xor %ebp,%ebp; call *%rdi; add $16,%rsp; pop %rbp; ret
  const unsigned char code[] = {0x55, 0x48, 0x83, 0xec, 0x10, 0x31, 0xed, 0xff,
                                0xd7, 0x48, 0x83, 0xc4, 0x10, 0x5d, 0xc3};
  Generate(code, sizeof(code))(WaitInFutex);
  KeepFrame();
}

NOINLINE void CallOnAnotherStack() { WaitInFutex(); }

NOINLINE void RunContext() {
  ucontext_t here, there;
  getcontext(&there);
  there.uc_stack.ss_size = 64 << 10;
  there.uc_stack.ss_sp = std::malloc(there.uc_stack.ss_size);
  there.uc_link = &here;
  makecontext(&there, CallOnAnotherStack, 0);
  swapcontext(&here, &there);
  KeepFrame();
}

struct Role {
  const char* name;
  void (*run)();
};

// clang-format off
const Role kRoles[] = {
    {"poll", CallFrameOfAnySize},
    {"poll by pointer", [] { FrameOfAnySize(-1); KeepFrame(); }},
    {"poll aligned", AlignedFrameOfAnySize},
    {"poll old frames", CallAmongOldFrames},
    {"poll fixed", FixedFrameWithFramePointer},
    {"poll assembly", CallAssemblyThatPolls},
    {"other stack", SignalOnAnotherStack},
    {"stack in heap", SignalOnAStackInAHeap},
    {"restorer", SignalWithoutUnwindInformation},
    {"assembly", CallAssembly},
    {"assembly ptr", CallAssemblyByPointer},
    {"assembly framed", CallAssemblyFromAnySize},
    {"assembly old", CallAssemblyAmongOldWords},
    {"assembly good", CallAssemblyForGood},
    {"generated", CallGenerated},
    {"generated bare", CallGeneratedWithoutFramePointer},
    {"context", RunContext},
    {"no table", [] { victim_no_table_call(WaitInFutex); KeepFrame(); }},
    {"split dwarf", [] { victim_split_dwarf_call(WaitInFutex); KeepFrame(); }},
    {"no aranges", [] { victim_no_aranges_call(WaitInFutex); KeepFrame(); }},
    {"cf protection", [] { victim_cf_protection_call(WaitInFutex); KeepFrame(); }},
};
// clang-format on

// clang-format off
const Role kEndlessRoles[] = {
    {"endless rule", [] { assembly_with_endless_rule(WaitInFutex); KeepFrame(); }},
};
// clang-format on

NOINLINE void Outer(void (*run)()) {
  run();
  KeepFrame();
}

void* RunRole(void* argument) {
  const Role* role = static_cast<const Role*>(argument);
  pthread_setname_np(pthread_self(), role->name);
  started.fetch_add(1);
  Outer(role->run);
  return nullptr;
}

template <size_t n>
void Start(const Role (&roles)[n]) {
  for (const Role& role : roles) {
    pthread_t thread;
    pthread_create(&thread, nullptr, RunRole, const_cast<Role*>(&role));
  }
  while (started.load() < static_cast<int>(n)) sched_yield();
}

}  // namespace victim

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  victim::poller = epoll_create1(EPOLL_CLOEXEC);
  if (argc > 1 && std::strcmp(argv[1], "endless") == 0) {
    victim::Start(victim::kEndlessRoles);
  } else {
    victim::Start(victim::kRoles);
  }
  std::puts("ready");
  std::fflush(stdout);
  char byte;
  while (read(0, &byte, 1) == 1) {
  }
  _exit(0);
}
