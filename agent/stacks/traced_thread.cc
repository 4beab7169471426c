// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/traced_thread.h"

#include <elf.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <time.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/monotonic_clock.h"

namespace rollcall {
namespace {

// This stands in linux/ptrace.h, which clashes with sys/ptrace.h.
constexpr int kEventStop = 128;

// A blocked thread takes some 50 us to wake and stop. A sleep would take longer, so spin until
// then.
constexpr int64_t kSpinNs = 200'000;
constexpr int64_t kNapNs = 50'000;

absl::Status FromErrno(const char* request, int error) {
  const std::string text = absl::StrCat("ptrace ", request, ": ", std::strerror(error));
  if (error == EPERM) return absl::PermissionDeniedError(text);
  if (error == ESRCH) return absl::NotFoundError(text);
  return absl::UnavailableError(text);
}

}  // namespace

absl::Status TracedThread::Seize() {
  if (ptrace(PTRACE_SEIZE, tid_, nullptr, nullptr) != 0) return FromErrno("seize", errno);
  return absl::OkStatus();
}

// Asks ptrace, not waitpid(). Another thread that waits for the agent's own child (`rollcall run`)
// could take the notification, and a wait here could reap that child.
bool TracedThread::AtStop() {
  siginfo_t info;
  std::memset(&info, 0, sizeof(info));
  if (ptrace(PTRACE_GETSIGINFO, tid_, nullptr, &info) != 0) return false;
  const bool event_stop = (info.si_code >> 8) == kEventStop;
  signal_ = event_stop ? 0 : info.si_signo;
  if (!event_stop) {
    how_ = HowTaken::kAtSignal;
  } else {
    how_ = info.si_signo == SIGTRAP ? HowTaken::kInterrupted : HowTaken::kStopped;
  }
  return true;
}

absl::Status TracedThread::Stop(int64_t timeout_ns) {
  if (ptrace(PTRACE_INTERRUPT, tid_, nullptr, nullptr) != 0) return FromErrno("interrupt", errno);
  const int64_t start = MonotonicNs();
  while (!AtStop()) {
    const int64_t waited = MonotonicNs() - start;
    if (waited > timeout_ns) return absl::DeadlineExceededError("it did not stop in time");
    if (waited < kSpinNs) {
      sched_yield();
    } else {
      const timespec nap = {0, kNapNs};
      nanosleep(&nap, nullptr);
    }
  }
  return absl::OkStatus();
}

absl::Status TracedThread::ReadRegisters(ThreadRegisters* registers) const {
  iovec buffer = {registers, sizeof(*registers)};
  if (ptrace(PTRACE_GETREGSET, tid_, NT_PRSTATUS, &buffer) != 0) {
    return FromErrno("registers", errno);
  }
  if (buffer.iov_len != sizeof(*registers)) {
    return absl::UnimplementedError("a 32-bit thread: Rollcall unwinds 64-bit ones only");
  }
  return absl::OkStatus();
}

bool TracedThread::Release() {
  if (!AtStop()) return false;
  return ptrace(PTRACE_DETACH, tid_, nullptr, signal_) == 0;
}

}  // namespace rollcall
