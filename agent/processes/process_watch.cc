// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/process_watch.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "agent/processes/payer.h"
#include "agent/processes/pidfd.h"
#include "agent/processes/proc_files.h"
#include "agent/processes/proc_stat.h"
#include "base/read_file.h"

namespace rollcall {
namespace {

constexpr int64_t kReadTimeout = 50'000'000;
constexpr int kMaxEndReads = 20;  // then the watch reports the end without an exit status

// A main thread that has ended is a zombie while other threads still run.
bool AnyThreadLives(const std::string& proc_root, pid_t pid) {
  const auto tids = ListNumbers(ProcPath(proc_root, pid, "task"));
  if (!tids.ok()) return false;
  for (const pid_t tid : *tids) {
    const auto thread = ReadProcThread(proc_root, pid, tid);
    if (thread.ok() && !IsDead(thread->state)) return true;
  }
  return false;
}

// Reads the stat of this process. kNotFound: another process has its pid.
absl::StatusOr<ProcStat> ReadStat(const std::string& proc_root, ProcessId process) {
  absl::StatusOr<ProcStat> stat = ReadProcStat(proc_root, process.pid);
  if (stat.ok() && stat->start_time != process.start_time) {
    return absl::NotFoundError("another process has this pid now");
  }
  return stat;
}

// Without permission the kernel shows status 0, which means a normal exit. This link needs the same
// permission, and zombies have it too.
bool MayReadWaitStatus(const std::string& proc_root, pid_t pid) {
  return !ReadLink(ProcPath(proc_root, pid, "ns/user")).empty();
}

bool HasEndedInProc(const std::string& proc_root, ProcessId process) {
  const absl::StatusOr<ProcStat> stat = ReadStat(proc_root, process);
  if (!stat.ok()) return absl::IsNotFound(stat.status());
  return IsDead(stat->state) && !AnyThreadLives(proc_root, process.pid);
}

// nullopt if the kernel does not show the status.
std::optional<int> ReadWaitStatus(const std::string& proc_root, ProcessId process) {
  const absl::StatusOr<ProcStat> stat = ReadStat(proc_root, process);
  if (!stat.ok() || !IsDead(stat->state) || !MayReadWaitStatus(proc_root, process.pid)) {
    return std::nullopt;
  }
  return stat->wait_status;
}

void SetWaitStatus(int wait_status, ProcessEnd* end) {
  if (WIFEXITED(wait_status)) end->exit_code = WEXITSTATUS(wait_status);
  if (WIFSIGNALED(wait_status)) end->signal = WTERMSIG(wait_status);
}

}  // namespace

ProcessWatch::ProcessWatch(std::string proc_root, std::shared_ptr<SpareThreads> threads)
    : ProcessWatch(std::move(proc_root), std::move(threads), OpenPidfd) {}

ProcessWatch::ProcessWatch(std::string proc_root, std::shared_ptr<SpareThreads> threads,
                           PidfdOpener opener)
    : proc_root_(std::move(proc_root)), threads_(std::move(threads)), open_(std::move(opener)) {}

// nullopt if the read timed out.
template <typename Value>
std::optional<Value> ProcessWatch::ReadInTime(ProcessId process,
                                              std::function<Value()> read) const {
  if (threads_ == nullptr) return read();
  return threads_->Get<Value>(absl::StrCat("process ", process.pid), std::move(read), kReadTimeout,
                              PayerOfReads(proc_root_, process.pid));
}

void ProcessWatch::Add(ProcessId process) {
  if (watched_.count(process) != 0) return;
  Watched& watched = watched_[process];
  watched.pidfd = UniqueFd(open_(process.pid).value_or(-1));
  Check(process, &watched);
}

// Verifies the pid after opening the pidfd: if the process still has the pid now, the pidfd refers
// to this process.
void ProcessWatch::Check(ProcessId process, Watched* watched) const {
  if (!watched->pidfd.valid()) watched->is_checked = true;
  if (watched->is_checked) return;
  const auto is_same = ReadInTime<bool>(
      process, [proc_root = proc_root_, process] { return ReadStat(proc_root, process).ok(); });
  if (!is_same.has_value()) return;
  watched->is_checked = true;
  if (!*is_same) watched->pidfd = UniqueFd();
}

void ProcessWatch::Remove(ProcessId process) { watched_.erase(process); }

// `ended`: what FindEndedPidfds() returned for the pidfds of all watched processes.
bool ProcessWatch::HasEnded(ProcessId process, const Watched& watched,
                            const std::vector<int>& ended) const {
  if (!watched.is_checked) return false;
  if (watched.pidfd.valid()) {
    return std::find(ended.begin(), ended.end(), watched.pidfd.get()) != ended.end();
  }
  const auto read = [root = proc_root_, process] { return HasEndedInProc(root, process); };
  return ReadInTime<bool>(process, read).value_or(false);
}

// nullopt if the read of /proc timed out; the next Poll() tries again.
std::optional<ProcessEnd> ProcessWatch::FindEnd(ProcessId process, Watched* watched) const {
  ProcessEnd end;
  end.process = process;
  using WaitStatus = std::optional<int>;
  const auto answer = ReadInTime<WaitStatus>(
      process, [proc_root = proc_root_, process] { return ReadWaitStatus(proc_root, process); });
  WaitStatus wait_status = answer.value_or(std::nullopt);
  // Read the pidfd second: if the parent has just collected the process, the pidfd has the status.
  if (!wait_status.has_value() && watched->pidfd.valid()) {
    wait_status = PidfdWaitStatus(watched->pidfd.get());
  }
  if (wait_status.has_value()) {
    SetWaitStatus(*wait_status, &end);
  } else if (!answer.has_value() && ++watched->end_reads < kMaxEndReads) {
    return std::nullopt;
  }
  return end;
}

std::vector<ProcessEnd> ProcessWatch::Poll() {
  std::vector<int> pidfds;
  for (auto& [process, watched] : watched_) {
    Check(process, &watched);
    if (watched.pidfd.valid()) pidfds.push_back(watched.pidfd.get());
  }
  const std::vector<int> ended = FindEndedPidfds(pidfds);
  std::vector<ProcessEnd> ends;
  for (auto entry = watched_.begin(); entry != watched_.end();) {
    const ProcessId process = entry->first;
    Watched& watched = entry->second;
    const auto end = HasEnded(process, watched, ended) ? FindEnd(process, &watched) : std::nullopt;
    if (!end.has_value()) {
      ++entry;
      continue;
    }
    ends.push_back(*end);
    entry = watched_.erase(entry);
  }
  return ends;
}

}  // namespace rollcall
