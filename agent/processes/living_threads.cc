// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/living_threads.h"

#include <unistd.h>

#include "agent/processes/proc_files.h"
#include "agent/processes/proc_stat.h"
#include "base/durations.h"
#include "base/monotonic_clock.h"
#include "base/steady_clock.h"

namespace rollcall {
namespace {

using Starts = std::map<pid_t, uint64_t>;

std::optional<Starts> FindByNumber(const std::string& tasks, const std::vector<pid_t>& tids) {
  Starts starts;
  for (const pid_t tid : tids) {
    const auto stat = ReadProcStat(tasks, tid);
    if (absl::IsNotFound(stat.status())) continue;
    if (!stat.ok()) return std::nullopt;
    if (!IsDead(stat->state)) starts[tid] = stat->start_time;
  }
  return starts;
}

// Reads all threads: /proc lists them by the agent's numbers, and shows a thread's own tid only in
// its status file.
std::optional<Starts> FindAmongAll(const std::string& proc_root, pid_t pid,
                                   const std::string& tasks) {
  const auto tids = ListNumbers(tasks);
  if (!tids.ok()) return std::nullopt;
  Starts starts;
  for (const pid_t tid : *tids) {
    const auto thread = ReadProcThread(proc_root, pid, tid);
    if (absl::IsNotFound(thread.status())) continue;
    if (!thread.ok()) return std::nullopt;
    if (thread->own_tid == 0) {
      // The thread may have ended between the two reads.
      if (absl::IsNotFound(ReadProcStat(tasks, tid).status())) continue;
      return std::nullopt;
    }
    if (!IsDead(thread->state)) starts[thread->own_tid] = thread->start_time;
  }
  return starts;
}

}  // namespace

std::optional<std::map<pid_t, uint64_t>> FindThreads(const std::string& proc_root,
                                                     ProcessId process,
                                                     const std::vector<pid_t>& own_tids,
                                                     bool other_numbers) {
  // A /proc that hides the process (hidepid) hides its threads too.
  const auto stat = ReadProcStat(proc_root, process.pid);
  if (!stat.ok() || stat->start_time != process.start_time) return std::nullopt;
  const std::string tasks = ProcPath(proc_root, process.pid, "task");
  return other_numbers ? FindAmongAll(proc_root, process.pid, tasks)
                       : FindByNumber(tasks, own_tids);
}

int64_t BeganAtSteadyNs(uint64_t start_time) {
  static const int64_t tick_ns = kSecond / sysconf(_SC_CLK_TCK);
  return SteadyNs() - (BootNs() - static_cast<int64_t>(start_time) * tick_ns);
}

}  // namespace rollcall
