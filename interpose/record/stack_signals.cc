// SPDX-License-Identifier: Apache-2.0
#include "interpose/record/stack_signals.h"

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
#include "interpose/segment.h"
#include "interpose/stderr_line.h"

namespace rollcall {
namespace {

using segment::SegmentHeader;
using segment::StackSlot;

static_assert(sizeof(user_regs_struct) <= segment::kRegistersBytes);

// Written once, before the installation of the handlers that read them.
char socket_directory[4096];  // of the segment, with a slash at the end
size_t socket_directory_length = 0;
char no_agent_line[200];
std::atomic<int> stack_signal{0};
std::atomic<bool> has_quit{false};
struct sigaction quit_before;
std::atomic<bool> installed{false};
// Whether a thread has set an alternate signal stack that is too small for our handlers.
std::atomic<bool> has_small_stack{false};

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

// Programs usually choose real-time signals from the lower end.
constexpr int kLowestSignal = 35;

// A loop over words that other threads have written: no memcpy() (copy_text.h).
char* Append(char* out, const char* text, size_t length) {
  for (; length > 0; --length) *static_cast<volatile char*>(out++) = *text++;
  return out;
}

void StoreRegisters(const user_regs_struct& registers, char* copy) {
  static_assert(sizeof(registers) % sizeof(uint64_t) == 0);
  uint64_t words[sizeof(registers) / sizeof(uint64_t)];
  memcpy(words, &registers, sizeof(words));
  auto* out = reinterpret_cast<segment::Word*>(copy);
  for (uint64_t word : words) (out++)->store(word, std::memory_order_relaxed);
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

// Writes the address of the socket `name` beside the segment. If the path is too long for an
// address, opens the directory as `*directory` (else -1) and names the socket through it. Returns
// the length of the address, or 0 on an error.
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

// Sends `fd` with one byte that shows its kind. False if no process receives it.
bool SendDescriptor(int fd, char what, const char* socket_name) {
  sockaddr_un address;
  long directory;
  const socklen_t length = SocketName(socket_name, &address, &directory);
  const long link =
      length == 0 ? -1 : syscall(SYS_socket, AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
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

void RequesterSocketName(uint32_t requester, char* out) {
  out = Append(out, segment::kRequesterSocketPrefix, sizeof(segment::kRequesterSocketPrefix) - 1);
  out = AppendNumber(out, requester);
  Append(out, segment::kSocketSuffix, sizeof(segment::kSocketSuffix));
}

uint64_t ThreadPointer() {
  uint64_t pointer;
#if defined(__x86_64__)
  __asm__("mov %%fs:0, %0" : "=r"(pointer));  // the ABI stores the base there
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

// Copies through the kernel: another thread may unmap memory above this stack meanwhile.
uint32_t CopyStack(long memory, uint64_t from, void* to) {
  if (memory < 0) return 0;
  // libc puts the thread's descriptor at the upper end of its stack.
  const uint64_t end = ThreadPointer();
  size_t bytes = segment::kMaxStackInCopy;
  if (end > from && end - from < bytes) bytes = end - from;
  const long count = syscall(SYS_pread64, memory, to, bytes, from);
  return count < 0 ? 0 : static_cast<uint32_t>(count);
}

// Claims the slot of a stack request. nullptr if there is no request, or it was withdrawn or
// claimed by another thread.
StackSlot* ClaimSlot(SegmentHeader* header, uint64_t request) {
  auto* slots =
      reinterpret_cast<StackSlot*>(reinterpret_cast<char*>(header) + segment::kStackSlotsOffset);
  StackSlot* slot = &slots[request % segment::kStackSlots];
  if (request == 0 || slot->requested.load() != request) return nullptr;
  uint64_t claimed = slot->claimed.load();
  if (claimed == request || !slot->claimed.compare_exchange_strong(claimed, request)) {
    return nullptr;
  }
  if (slot->requested.load() == request) return slot;
  slot->answered.store(request);
  return nullptr;
}

// Does what the signal would do without the library, once the handler returns: the signal is not an
// agent's request.
void TakeDefaultAction(int signal) {
  struct sigaction nothing;
  memset(&nothing, 0, sizeof(nothing));
  nothing.sa_handler = SIG_DFL;
  sigaction(signal, &nothing, nullptr);
  syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), signal);
}

void AnswerStackRequest(int signal, siginfo_t* info, void* context) {
  const KeepErrno keep_errno;
  if (info->si_code != SI_QUEUE) return TakeDefaultAction(signal);
  SegmentHeader* header = recorder.header.load(std::memory_order_acquire);
  if (header == nullptr) return;
  const auto request = reinterpret_cast<uintptr_t>(info->si_value.sival_ptr);
  StackSlot* slot = ClaimSlot(header, request);
  if (slot == nullptr) return;
  char* copy = reinterpret_cast<char*>(header) + segment::kStackAreaOffset +
               request % segment::kStackSlots * segment::kStackCopyBytes;
  user_regs_struct registers;
  CopyRegisters(*static_cast<const ucontext_t*>(context), &registers);
  StoreRegisters(registers, copy);  // which may be written only
  const uint64_t stack_pointer = StackPointer(registers);
  const long memory = OpenOwnMemory();
  slot->stack_pointer.store(stack_pointer, std::memory_order_relaxed);
  slot->stack_bytes.store(CopyStack(memory, stack_pointer, copy + segment::kRegistersBytes),
                          std::memory_order_relaxed);
  const bool wants_memory = (slot->flags.load() & segment::kRequestMemory) != 0;
  slot->answered.store(request);  // from here on the requester owns the slot
  if (memory < 0) return;
  if (wants_memory) {
    char name[40];
    RequesterSocketName(header->requester.load(), name);
    SendDescriptor(static_cast<int>(memory), segment::kMemoryDescriptor, name);
  }
  syscall(SYS_close, memory);
}

void AnswerQuit(int) {
  const KeepErrno keep_errno;
  if (SendDescriptor(STDERR_FILENO, segment::kStderrDescriptor, segment::kAgentSocket)) return;
  WriteStderrLine(no_agent_line);
}

bool IsFree(int signal) {
  struct sigaction current;
  return sigaction(signal, nullptr, &current) == 0 && (current.sa_flags & SA_SIGINFO) == 0 &&
         current.sa_handler == SIG_DFL;
}

// A shell sets background jobs to ignore SIGQUIT, so that setting counts as free too.
bool QuitIsFree() {
  return sigaction(SIGQUIT, nullptr, &quit_before) == 0 &&
         (quit_before.sa_flags & SA_SIGINFO) == 0 &&
         (quit_before.sa_handler == SIG_DFL || quit_before.sa_handler == SIG_IGN);
}

bool Install(int signal, struct sigaction action) {
  action.sa_flags |= SA_RESTART | SA_ONSTACK;
  sigfillset(&action.sa_mask);  // no other handler interrupts ours, but that of bus_guard.h
  sigdelset(&action.sa_mask, SIGBUS);
  return sigaction(signal, &action, nullptr) == 0;
}

void InstallStackSignal() {
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_sigaction = &AnswerStackRequest;
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

// Whether the handler is still ours. False if the program has set another one.
bool IsOurs(int signal, struct sigaction* current) {
  if (sigaction(signal, nullptr, current) != 0) return false;
  return (current->sa_flags & SA_SIGINFO) != 0 ? current->sa_sigaction == &AnswerStackRequest
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

// Stops further stack requests, because no flag suits all threads. With SA_ONSTACK the handler
// overflows a small signal stack. Without it the handler runs on the thread's own stack, which is
// not safe on every thread (Go's). The handler answers a request that is already under way on the
// thread's own stack.
void StopUsingSignalStacks() {
  const KeepErrno keep_errno;
  SegmentHeader* header = recorder.header.load(std::memory_order_acquire);
  if (header != nullptr) header->stack_signal.store(0, std::memory_order_release);
  const int signal = stack_signal.load();
  if (signal != 0) UseOwnStack(signal);
  if (has_quit.load()) UseOwnStack(SIGQUIT);
}

// Whether a handler has too little room on the stack. The kernel pushes its frame before a handler
// can check, and ends the process if the frame does not fit.
bool IsSmall(size_t bytes) {
  constexpr size_t kHandler = 2048;
  constexpr size_t kUsualFrame = 4096;  // all registers except AMX and long SVE registers
  if (bytes < kUsualFrame + kHandler) return true;
  // Threads that use AMX or long SVE registers must have stacks of this size.
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
  snprintf(no_agent_line, sizeof(no_agent_line),
           "rollcall[rank %d, pid %d]: no agent of Rollcall answers on this host; to see the "
           "stacks:  rollcall stacks %d\n",
           FindPlace(&getenv).rank, pid, pid);
}

void InstallStackSignals() {
  if (installed.exchange(true)) return;
  if (recorder.options.stack_signal) InstallStackSignal();
  if (recorder.options.sigquit) InstallQuit();
  if (has_small_stack.load()) StopUsingSignalStacks();
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

// Any process may call this function, also in a signal handler, so it makes the system call itself
// and looks up no real function.
extern "C" ROLLCALL_EXPORT int sigaltstack(const stack_t* stack, stack_t* before) noexcept {
  if (stack != nullptr && (stack->ss_flags & SS_DISABLE) == 0 &&
      rollcall::IsSmall(stack->ss_size) && !rollcall::has_small_stack.exchange(true)) {
    rollcall::StopUsingSignalStacks();
  }
  return static_cast<int>(syscall(SYS_sigaltstack, stack, before));
}
