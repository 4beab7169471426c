// SPDX-License-Identifier: Apache-2.0
#include "interpose/stack_signals.h"

#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/user.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>

#include "interpose/environment.h"
#include "interpose/keep_errno.h"
#include "interpose/real.h"
#include "interpose/recorder.h"
#include "interpose/say.h"
#include "interpose/segment.h"

namespace rollcall {
namespace {

using segment::SegmentHeader;
using segment::StackSlot;

static_assert(sizeof(user_regs_struct) <= segment::kRegistersBytes);

// Written once, before the handlers that read them are installed.
char socket_directory[4096];  // of the segment, with a slash at the end
size_t socket_directory_length = 0;
char nobody_answers[200];
std::atomic<int> stack_signal{0};
std::atomic<bool> has_quit{false};
struct sigaction quit_before;
std::atomic<bool> installed{false};
// A thread has, or had, a stack for signals on which our handlers have no room.
std::atomic<bool> has_small_stack{false};

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

// Programs choose from the lower end.
constexpr int kLowestSignal = 35;

char* Append(char* out, const char* text, size_t length) {
  memcpy(out, text, length);
  return out + length;
}

char* AppendNumber(char* out, uint32_t number) {
  char digits[12];
  int count = 0;
  do {
    digits[count++] = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number != 0);
  while (count > 0) *out++ = digits[--count];
  return out;
}

// Names the socket `name` beside the segment. A path that is too long for a socket is named by its
// open directory, which `*directory` is then (-1: none is needed). 0: that is not possible.
socklen_t SocketName(const char* name, sockaddr_un* address, long* directory) {
  constexpr char kOpenFiles[] = "/proc/self/fd/";
  const size_t length = strlen(name) + 1;
  address->sun_family = AF_UNIX;
  char* out = address->sun_path;
  *directory = -1;
  if (socket_directory_length + length <= sizeof(address->sun_path)) {
    out = Append(out, socket_directory, socket_directory_length);
  } else {
    *directory = syscall(SYS_openat, AT_FDCWD, socket_directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (*directory < 0) return 0;
    out = Append(out, kOpenFiles, sizeof(kOpenFiles) - 1);
    out = AppendNumber(out, static_cast<uint32_t>(*directory));
    *out++ = '/';
  }
  out = Append(out, name, length);
  return static_cast<socklen_t>(out - reinterpret_cast<char*>(address));
}

// Passes `fd` on, with one byte that says what it is. False: nobody takes it.
bool SendDescriptor(int fd, char what, const char* socket_name) {
  sockaddr_un address;
  long directory;
  const socklen_t length = SocketName(socket_name, &address, &directory);
  const long link = length == 0 ? -1
                                : syscall(SYS_socket, AF_UNIX,
                                          SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  iovec text = {&what, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  memset(control, 0, sizeof(control));
  msghdr message;
  memset(&message, 0, sizeof(message));
  message.msg_name = &address;
  message.msg_namelen = length;
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* passed = CMSG_FIRSTHDR(&message);
  passed->cmsg_level = SOL_SOCKET;
  passed->cmsg_type = SCM_RIGHTS;
  passed->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(passed), &fd, sizeof(fd));
  const long sent =
      link < 0 ? -1 : syscall(SYS_sendmsg, link, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (link >= 0) syscall(SYS_close, link);
  if (directory >= 0) syscall(SYS_close, directory);
  return sent == 1;
}

void AskerSocketName(uint32_t asker, char* out) {
  out = Append(out, segment::kAskerSocketPrefix, sizeof(segment::kAskerSocketPrefix) - 1);
  out = AppendNumber(out, asker);
  Append(out, segment::kSocketSuffix, sizeof(segment::kSocketSuffix));
}

uint64_t ThreadPointer() {
  uint64_t pointer;
#if defined(__x86_64__)
  __asm__("mov %%fs:0, %0" : "=r"(pointer));  // the ABI keeps the base there
#else
  __asm__("mrs %0, tpidr_el0" : "=r"(pointer));
#endif
  return pointer;
}

void CopyRegisters(const ucontext_t& context, user_regs_struct* out) {
  memset(out, 0, sizeof(*out));
#if defined(__x86_64__)
  const greg_t* from = context.uc_mcontext.gregs;
  const auto get = [from](int number) { return static_cast<unsigned long long>(from[number]); };
  out->r15 = get(REG_R15);
  out->r14 = get(REG_R14);
  out->r13 = get(REG_R13);
  out->r12 = get(REG_R12);
  out->rbp = get(REG_RBP);
  out->rbx = get(REG_RBX);
  out->r11 = get(REG_R11);
  out->r10 = get(REG_R10);
  out->r9 = get(REG_R9);
  out->r8 = get(REG_R8);
  out->rax = get(REG_RAX);
  out->rcx = get(REG_RCX);
  out->rdx = get(REG_RDX);
  out->rsi = get(REG_RSI);
  out->rdi = get(REG_RDI);
  out->orig_rax = ~0ull;
  out->rip = get(REG_RIP);
  out->eflags = get(REG_EFL);
  out->rsp = get(REG_RSP);
  out->fs_base = ThreadPointer();
#else
  memcpy(out->regs, context.uc_mcontext.regs, sizeof(out->regs));
  out->sp = context.uc_mcontext.sp;
  out->pc = context.uc_mcontext.pc;
  out->pstate = context.uc_mcontext.pstate;
#endif
}

uint64_t StackPointer(const user_regs_struct& registers) {
#if defined(__x86_64__)
  return registers.rsp;
#else
  return registers.sp;
#endif
}

long OpenOwnMemory() {
  return syscall(SYS_openat, AT_FDCWD, "/proc/self/mem", O_RDONLY | O_CLOEXEC);
}

// By the kernel: another thread may unmap what lies above this stack meanwhile.
uint32_t CopyStack(long memory, uint64_t from, void* to) {
  if (memory < 0) return 0;
  // libc puts a thread's descriptor at the upper end of its stack.
  const uint64_t end = ThreadPointer();
  size_t bytes = segment::kMaxStackInCopy;
  if (end > from && end - from < bytes) bytes = end - from;
  const long count = syscall(SYS_pread64, memory, to, bytes, from);
  return count < 0 ? 0 : static_cast<uint32_t>(count);
}

// nullptr: not asked, not any more, or another thread was.
StackSlot* ClaimSlot(SegmentHeader* header, uint64_t question) {
  auto* slots =
      reinterpret_cast<StackSlot*>(reinterpret_cast<char*>(header) + segment::kStackSlotsOffset);
  StackSlot* slot = &slots[question % segment::kStackSlots];
  if (question == 0 || slot->asked.load() != question) return nullptr;
  uint64_t claimed = slot->claimed.load();
  if (claimed == question || !slot->claimed.compare_exchange_strong(claimed, question)) {
    return nullptr;
  }
  if (slot->asked.load() == question) return slot;
  slot->answered.store(question);
  return nullptr;
}

// No question of an agent's: the signal does what it would have done without us, once the handler
// returns.
void DieBy(int signal) {
  struct sigaction nothing;
  memset(&nothing, 0, sizeof(nothing));
  nothing.sa_handler = SIG_DFL;
  sigaction(signal, &nothing, nullptr);
  syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), signal);
}

void AnswerQuestion(int signal, siginfo_t* info, void* context) {
  const KeepErrno keep_errno;
  if (info->si_code != SI_QUEUE) return DieBy(signal);
  SegmentHeader* header = recorder.header.load(std::memory_order_acquire);
  if (header == nullptr) return;
  const auto question = reinterpret_cast<uintptr_t>(info->si_value.sival_ptr);
  StackSlot* slot = ClaimSlot(header, question);
  if (slot == nullptr) return;
  char* copy = reinterpret_cast<char*>(header) + segment::kStackAreaOffset +
               question % segment::kStackSlots * segment::kStackCopyBytes;
  auto* registers = reinterpret_cast<user_regs_struct*>(copy);
  CopyRegisters(*static_cast<const ucontext_t*>(context), registers);
  const uint64_t stack_pointer = StackPointer(*registers);
  const long memory = OpenOwnMemory();
  slot->stack_pointer.store(stack_pointer, std::memory_order_relaxed);
  slot->stack_bytes.store(CopyStack(memory, stack_pointer, copy + segment::kRegistersBytes),
                          std::memory_order_relaxed);
  const bool ask_memory = (slot->flags.load() & segment::kAskMemory) != 0;
  slot->answered.store(question);  // from here on the slot is the asker's
  if (memory < 0) return;
  if (ask_memory) {
    char name[40];
    AskerSocketName(header->asker.load(), name);
    SendDescriptor(static_cast<int>(memory), segment::kMemoryDescriptor, name);
  }
  syscall(SYS_close, memory);
}

void AnswerQuit(int) {
  const KeepErrno keep_errno;
  if (SendDescriptor(STDERR_FILENO, segment::kStderrDescriptor, segment::kAgentSocket)) return;
  SayLine(nobody_answers);
}

bool IsFree(int signal) {
  struct sigaction current;
  return sigaction(signal, nullptr, &current) == 0 && (current.sa_flags & SA_SIGINFO) == 0 &&
         current.sa_handler == SIG_DFL;
}

// Shells have jobs in the background ignore SIGQUIT: nobody's own handler, either.
bool QuitIsFree() {
  return sigaction(SIGQUIT, nullptr, &quit_before) == 0 &&
         (quit_before.sa_flags & SA_SIGINFO) == 0 &&
         (quit_before.sa_handler == SIG_DFL || quit_before.sa_handler == SIG_IGN);
}

bool Install(int signal, struct sigaction action) {
  action.sa_flags |= SA_RESTART | SA_ONSTACK;
  sigfillset(&action.sa_mask);  // no other handler on top of ours
  return sigaction(signal, &action, nullptr) == 0;
}

void InstallStackSignal() {
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_sigaction = &AnswerQuestion;
  action.sa_flags = SA_SIGINFO;
  int signal = SIGRTMAX;
  while (signal >= kLowestSignal && !IsFree(signal)) --signal;
  if (signal < kLowestSignal || !Install(signal, action)) return;
  stack_signal = signal;
  SegmentHeader* header = recorder.mapping.load(std::memory_order_acquire);
  header->stack_signal.store(static_cast<uint32_t>(signal), std::memory_order_release);
}

void InstallQuit() {
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_handler = &AnswerQuit;
  has_quit = QuitIsFree() && Install(SIGQUIT, action);
}

// False: the program has set another handler since.
bool IsOurs(int signal, struct sigaction* current) {
  if (sigaction(signal, nullptr, current) != 0) return false;
  return (current->sa_flags & SA_SIGINFO) != 0 ? current->sa_sigaction == &AnswerQuestion
                                               : current->sa_handler == &AnswerQuit;
}

void GiveBack(int signal, const struct sigaction& before) {
  struct sigaction current;
  if (IsOurs(signal, &current)) sigaction(signal, &before, nullptr);
}

void UseOwnStack(int signal) {
  struct sigaction current;
  if (!IsOurs(signal, &current)) return;
  current.sa_flags &= ~SA_ONSTACK;
  sigaction(signal, &current, nullptr);
}

// Agents ask no more, since no flag suits all threads then: some must not have a handler on the
// stack that they run on (Go's). Who asks at this moment is answered there all the same.
void LeaveSignalStacks() {
  const KeepErrno keep_errno;
  SegmentHeader* header = recorder.header.load(std::memory_order_acquire);
  if (header != nullptr) header->stack_signal.store(0, std::memory_order_release);
  const int signal = stack_signal.load();
  if (signal != 0) UseOwnStack(signal);
  if (has_quit.load()) UseOwnStack(SIGQUIT);
}

// The kernel's frame is there before a handler can look how much room there is, and where it does
// not fit the kernel ends the process.
bool IsSmall(size_t bytes) {
  constexpr size_t kHandler = 2048;
  constexpr size_t kUsualFrame = 4096;  // with all registers but those of AMX, and SVE's when long
  if (bytes < kUsualFrame + kHandler) return true;
  // Threads that use those too must have stacks of this size.
  const size_t largest_frame = getauxval(AT_MINSIGSTKSZ);
  return bytes >= largest_frame && bytes < largest_frame + kHandler;
}

}  // namespace

void PrepareStackSignals(const char* segment_path) {
  const char* slash = strrchr(segment_path, '/');
  const size_t length = slash == nullptr ? 0 : static_cast<size_t>(slash - segment_path) + 1;
  if (length < sizeof(socket_directory)) {
    memcpy(socket_directory, segment_path, length);
    socket_directory_length = length;
  }
  const int pid = static_cast<int>(getpid());
  snprintf(nobody_answers, sizeof(nobody_answers),
           "rollcall[rank %d, pid %d]: no agent of Rollcall answers on this host; to see the "
           "stacks:  rollcall stacks %d\n",
           FindPlace(&getenv).rank, pid, pid);
}

void InstallStackSignals() {
  if (installed.exchange(true)) return;
  if (recorder.options.stack_signal) InstallStackSignal();
  if (recorder.options.sigquit) InstallQuit();
  if (has_small_stack.load()) LeaveSignalStacks();
}

void RemoveStackSignals() {
  if (!installed.exchange(false)) return;
  struct sigaction nothing;
  memset(&nothing, 0, sizeof(nothing));
  nothing.sa_handler = SIG_DFL;
  const int signal = stack_signal.exchange(0);
  if (signal != 0) GiveBack(signal, nothing);
  if (has_quit.exchange(false)) GiveBack(SIGQUIT, quit_before);
}

}  // namespace rollcall

// Any process may call it, also in a handler, so the kernel is called directly and nothing is
// looked up.
extern "C" ROLLCALL_EXPORT int sigaltstack(const stack_t* stack, stack_t* before) noexcept {
  if (stack != nullptr && (stack->ss_flags & SS_DISABLE) == 0 &&
      rollcall::IsSmall(stack->ss_size) && !rollcall::has_small_stack.exchange(true)) {
    rollcall::LeaveSignalStacks();
  }
  return static_cast<int>(syscall(SYS_sigaltstack, stack, before));
}
