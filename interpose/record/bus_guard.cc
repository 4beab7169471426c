// SPDX-License-Identifier: Apache-2.0
#include "interpose/record/bus_guard.h"

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "interpose/keep_cancel.h"
#include "interpose/keep_errno.h"
#include "interpose/segment_file.h"

namespace rollcall {
namespace {

std::atomic<bool> guard_installed{false};
void (*stop_recording)() = nullptr;

// Restores the default action. A fault comes again when the handler returns, and then ends the
// process where it happened, as without the library. A signal that was sent must be sent again.
void LetItEnd(const siginfo_t& info) {
  struct sigaction end;
  memset(&end, 0, sizeof(end));
  end.sa_handler = SIG_DFL;
  sigaction(SIGBUS, &end, nullptr);
  const bool is_fault = info.si_code > 0 && info.si_code != BUS_MCEERR_AO;
  if (!is_fault) syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGBUS);
}

void OnBusError(int, siginfo_t* info, void*) {
  const KeepErrno keep_errno;
  const KeepCancel keep_cancel;
  if (info->si_code != BUS_ADRERR || !CoverSegment(info->si_addr)) return LetItEnd(*info);
  stop_recording();
}

}  // namespace

// On the thread's own stack: an alternate one may be too small for what the handler calls.
void InstallBusGuard(void (*stop)()) {
  if (guard_installed.exchange(true)) return;
  stop_recording = stop;
  struct sigaction current, ours;
  if (sigaction(SIGBUS, nullptr, &current) != 0 || (current.sa_flags & SA_SIGINFO) != 0 ||
      current.sa_handler != SIG_DFL) {
    return;
  }
  memset(&ours, 0, sizeof(ours));
  ours.sa_sigaction = &OnBusError;
  ours.sa_flags = SA_SIGINFO | SA_RESTART;
  sigfillset(&ours.sa_mask);
  sigaction(SIGBUS, &ours, nullptr);
}

void RemoveBusGuard() {
  if (!guard_installed.exchange(false)) return;
  struct sigaction current, before;
  if (sigaction(SIGBUS, nullptr, &current) != 0 || current.sa_sigaction != &OnBusError) return;
  memset(&before, 0, sizeof(before));
  before.sa_handler = SIG_DFL;
  sigaction(SIGBUS, &before, nullptr);
}

}  // namespace rollcall
