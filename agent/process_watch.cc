#include "agent/process_watch.h"

#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "agent/pidfd.h"
#include "agent/proc_evidence.h"
#include "agent/proc_files.h"

namespace rollcall {
namespace {

bool IsDead(char state) { return state == 'Z' || state == 'X'; }

// A main thread that has ended leaves a zombie while other threads work on.
bool AnyThreadLives(const std::string& proc_root, pid_t pid) {
  const auto tids = ListNumbers(ProcPath(proc_root, pid, "task"));
  if (!tids.ok()) return false;
  for (const pid_t tid : *tids) {
    const auto thread = ReadThreadEvidence(proc_root, pid, tid);
    if (thread.ok() && !IsDead(thread->state)) return true;
  }
  return false;
}

// The process itself, not another under its number.
absl::StatusOr<ProcStat> ReadStatOf(const std::string& proc_root, ProcessId process) {
  absl::StatusOr<ProcStat> stat = ReadProcStat(proc_root, process.pid);
  if (stat.ok() && stat->start_ticks != process.start_ticks) {
    return absl::NotFoundError("the number belongs to another process now");
  }
  return stat;
}

// Without permission the kernel gives 0, which would look like a clean exit. It asks the same
// permission for this link, which even zombies have.
bool MayReadWaitStatus(const std::string& proc_root, pid_t pid) {
  char target[64];
  return readlink(ProcPath(proc_root, pid, "ns/user").c_str(), target, sizeof(target)) > 0;
}

void SetHow(int wait_status, ProcessEnd* end) {
  if (WIFEXITED(wait_status)) end->exit_code = WEXITSTATUS(wait_status);
  if (WIFSIGNALED(wait_status)) end->signal = WTERMSIG(wait_status);
}

}  // namespace

ProcessWatch::ProcessWatch(std::string proc_root) : ProcessWatch(std::move(proc_root), OpenPidfd) {}

ProcessWatch::ProcessWatch(std::string proc_root, PidfdOpener opener)
    : proc_root_(std::move(proc_root)), open_(std::move(opener)) {}

ProcessWatch::~ProcessWatch() {
  for (const auto& [process, pidfd] : watched_) {
    if (pidfd >= 0) close(pidfd);
  }
}

void ProcessWatch::Add(ProcessId process) {
  if (watched_.count(process) != 0) return;
  int pidfd = open_(process.pid).value_or(-1);
  // Checked after opening: whatever the number meant in between, the handle is the process's now.
  if (pidfd >= 0 && !ReadStatOf(proc_root_, process).ok()) {
    close(pidfd);
    pidfd = -1;
  }
  watched_[process] = pidfd;
}

void ProcessWatch::Remove(ProcessId process) {
  const auto found = watched_.find(process);
  if (found == watched_.end()) return;
  if (found->second >= 0) close(found->second);
  watched_.erase(found);
}

bool ProcessWatch::HasEnded(ProcessId process, int pidfd) const {
  if (pidfd >= 0) return PidfdEnded(pidfd);
  const absl::StatusOr<ProcStat> stat = ReadStatOf(proc_root_, process);
  if (!stat.ok()) return absl::IsNotFound(stat.status());
  return IsDead(stat->state) && !AnyThreadLives(proc_root_, process.pid);
}

ProcessEnd ProcessWatch::HowEnded(ProcessId process, int pidfd) const {
  ProcessEnd end;
  end.process = process;
  const absl::StatusOr<ProcStat> stat = ReadStatOf(proc_root_, process);
  if (stat.ok() && IsDead(stat->state) && MayReadWaitStatus(proc_root_, process.pid)) {
    SetHow(stat->wait_status, &end);
    return end;
  }
  // Asked second: if the parent collected it just now, the kernel knows by this time.
  const std::optional<int> wait_status = pidfd >= 0 ? PidfdWaitStatus(pidfd) : std::nullopt;
  if (wait_status.has_value()) SetHow(*wait_status, &end);
  return end;
}

std::vector<ProcessEnd> ProcessWatch::Poll() {
  std::vector<ProcessEnd> ends;
  for (auto entry = watched_.begin(); entry != watched_.end();) {
    const auto [process, pidfd] = *entry;
    if (!HasEnded(process, pidfd)) {
      ++entry;
      continue;
    }
    ends.push_back(HowEnded(process, pidfd));
    if (pidfd >= 0) close(pidfd);
    entry = watched_.erase(entry);
  }
  return ends;
}

}  // namespace rollcall
