// SPDX-License-Identifier: Apache-2.0
#include "cli/run/running_job.h"

#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/durations.h"
#include "base/monotonic_clock.h"

namespace rollcall {
namespace {

constexpr int64_t kGrace = 5 * kSecond;             // from SIGTERM to SIGKILL
constexpr int64_t kRanksEndWithinNs = 2 * kSecond;  // after the end of a command that failed
constexpr useconds_t kLookForEndUs = 20'000;

}  // namespace

RunningJob::RunningJob() : inherited_(ReadInheritedSignals()) {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&wanted, signal);
  pthread_sigmask(SIG_BLOCK, &wanted, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGCHLD, SIG_DFL);  // while SIGCHLD is ignored, the kernel gives no exit code
  signals_ = UniqueFd(signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  // This process adopts orphans of the job, so that it can end them.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

int RunningJob::Start(const std::vector<std::string>& command,
                      const std::vector<std::string>& environment) {
  const Spawned spawned = Spawn(command, environment, inherited_);
  if (spawned.pid < 0) {
    spdlog::error("cannot run {}: {}", command.front(), strerror(spawned.error));
    return ExitCodeOfSpawnError(spawned.error);
  }
  child_ = spawned.pid;
  return 0;
}

void RunningJob::Poll(int most_ms) {
  pollfd wait = {signals_.get(), POLLIN, 0};
  poll(&wait, 1, most_ms);
  TakeSignals();
  if (has_ended_ || kill_at_ns_ == 0 || MonotonicNs() <= kill_at_ns_) return;
  SignalAll(OwnDescendants(), SIGKILL);
  kill_at_ns_ += kGrace;
}

void RunningJob::TakeSignals() {
  signalfd_siginfo info;
  while (read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo != SIGCHLD) PassOn(info);
  }
  Reap();
}

void RunningJob::PassOn(const signalfd_siginfo& info) {
  const int signal = static_cast<int>(info.ssi_signo);
  // A key at the terminal reaches the whole foreground group, the job included.
  const bool from_terminal = info.ssi_code == SI_KERNEL;
  if (!from_terminal) kill(child_, signal);
  if (signal == SIGQUIT) return;  // programs may answer SIGQUIT and go on
  if (inherited_.MayGoOnAfter(signal)) return;
  // A second signal ends the job.
  kill_at_ns_ = kill_at_ns_ == 0 ? MonotonicNs() + 2 * kGrace : MonotonicNs();
}

void RunningJob::Reap() {
  int status = 0;
  pid_t pid;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
    // The agent stops threads for a moment to take stacks. waitpid() reports these stops, too.
    if (pid != child_ || !(WIFEXITED(status) || WIFSIGNALED(status))) continue;
    has_ended_ = true;
    exit_code_ = ToExitCode(status);
  }
}

void RunningJob::End() {
  SignalAll(OwnDescendants(), SIGTERM);
  SignalAll(OwnDescendants(), SIGCONT);  // so that stopped ranks receive the signal too
  kill_at_ns_ = MonotonicNs() + kGrace;
}

void RunningJob::AwaitRest() {
  if (kill_at_ns_ != 0) {
    EndLingering();
  } else if (exit_code_ != 0) {
    AwaitRanks();
  }
}

// The rest gets the same time as the command.
void RunningJob::EndLingering() {
  SignalAll(OwnDescendants(), SIGTERM);
  const int64_t until = MonotonicNs() + kGrace;
  while (!OwnDescendants().empty() && MonotonicNs() < until) {
    usleep(kLookForEndUs);
    Reap();
  }
  SignalAll(OwnDescendants(), SIGKILL);
  usleep(kLookForEndUs);
  Reap();
}

// A launcher whose rank has failed kills the other ranks. Open MPI's then exits although some of
// them have not ended yet. The agent's last tick has to have the end of each rank, because there is
// no verdict on the end of a job with a living rank.
void RunningJob::AwaitRanks() {
  const int64_t until_ns = MonotonicNs() + kRanksEndWithinNs;
  while (!OwnDescendants().empty() && MonotonicNs() < until_ns) {
    usleep(kLookForEndUs);
    Reap();
  }
}

}  // namespace rollcall
