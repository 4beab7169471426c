// SPDX-License-Identifier: Apache-2.0
#include "interpose/stderr_line.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <initializer_list>

#include "interpose/keep_errno.h"

namespace rollcall {
namespace {

constexpr size_t kMostLine = 1024;
constexpr size_t kKernelSignalBytes = 8;  // of the kernel's signal set

bool HasRoom() {
  pollfd room = {STDERR_FILENO, POLLOUT, 0};
  const timespec at_once = {0, 0};
  return syscall(SYS_ppoll, &room, 1, &at_once, nullptr, 0) == 1 && room.revents == POLLOUT;
}

// The signals that write() may send to the calling thread.
sigset_t WriteSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGPIPE, SIGXFSZ, SIGTTOU}) sigaddset(&signals, signal);
  return signals;
}

// Removes the signals that our write has raised. A signal that was pending before is the program's.
void DiscardOwnSignals(const sigset_t& waiting_before) {
  sigset_t ours = WriteSignals();
  for (int signal : {SIGPIPE, SIGXFSZ, SIGTTOU}) {
    if (sigismember(&waiting_before, signal) == 1) sigdelset(&ours, signal);
  }
  const timespec at_once = {0, 0};
  while (syscall(SYS_rt_sigtimedwait, &ours, nullptr, &at_once, kKernelSignalBytes) > 0) {
  }
}

}  // namespace

void WriteStderrLine(const char* line) {
  const KeepErrno keep_errno;
  char clean[kMostLine];
  size_t length = 0;
  for (; length < sizeof(clean) && line[length] != '\0'; ++length) {
    const bool last = line[length] == '\n' && line[length + 1] == '\0';
    const auto byte = static_cast<unsigned char>(line[length]);
    clean[length] = !last && (byte < ' ' || byte == 0x7f) ? '?' : line[length];
  }
  sigset_t blocked = WriteSignals(), before, waiting;
  if (!HasRoom() || sigpending(&waiting) != 0) return;
  if (syscall(SYS_rt_sigprocmask, SIG_BLOCK, &blocked, &before, kKernelSignalBytes) != 0) return;
  if (syscall(SYS_write, STDERR_FILENO, clean, length) < 0) DiscardOwnSignals(waiting);
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, kKernelSignalBytes);
}

}  // namespace rollcall
