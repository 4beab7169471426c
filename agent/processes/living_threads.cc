#include "agent/processes/living_threads.h"

#include <time.h>
#include <unistd.h>

#include "agent/processes/proc_evidence.h"
#include "agent/processes/proc_files.h"
#include "proto/steady_clock.h"

namespace rollcall {
namespace {

using Starts = std::map<pid_t, uint64_t>;

bool IsDead(char state) { return state == 'Z' || state == 'X'; }

std::optional<Starts> FindByNumber(const std::string& tasks, const std::vector<pid_t>& tids) {
  Starts starts;
  for (const pid_t tid : tids) {
    const auto stat = ReadProcStat(tasks, tid);
    if (absl::IsNotFound(stat.status())) continue;
    if (!stat.ok()) return std::nullopt;
    if (!IsDead(stat->state)) starts[tid] = stat->start_ticks;
  }
  return starts;
}

// Threads tell their own numbers, but are not found by them.
std::optional<Starts> FindAmongAll(const std::string& proc_root, pid_t pid,
                                   const std::string& tasks) {
  const auto tids = ListNumbers(tasks);
  if (!tids.ok()) return std::nullopt;
  Starts starts;
  for (const pid_t tid : *tids) {
    const auto thread = ReadThreadEvidence(proc_root, pid, tid);
    if (absl::IsNotFound(thread.status())) continue;
    if (!thread.ok() || thread->own_tid == 0) return std::nullopt;
    if (!IsDead(thread->state)) starts[thread->own_tid] = thread->start_ticks;
  }
  return starts;
}

}  // namespace

std::optional<std::map<pid_t, uint64_t>> FindThreads(const std::string& proc_root,
                                                     ProcessId process,
                                                     const std::vector<pid_t>& own_tids,
                                                     bool other_numbers) {
  // A /proc that hides the process has none of its threads either.
  const auto stat = ReadProcStat(proc_root, process.pid);
  if (!stat.ok() || stat->start_ticks != process.start_ticks) return std::nullopt;
  const std::string tasks = ProcPath(proc_root, process.pid, "task");
  return other_numbers ? FindAmongAll(proc_root, process.pid, tasks)
                       : FindByNumber(tasks, own_tids);
}

int64_t BeganAtSteadyNs(uint64_t start_ticks) {
  static const int64_t tick_ns = 1'000'000'000 / sysconf(_SC_CLK_TCK);
  timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  const int64_t up_ns = now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
  return SteadyNs() - (up_ns - static_cast<int64_t>(start_ticks) * tick_ns);
}

}  // namespace rollcall
