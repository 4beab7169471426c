// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/sample_switches.h"

#include <algorithm>
#include <ctime>

#include "agent/processes/proc_stat.h"
#include "agent/stacks/sample_parts.h"
#include "base/monotonic_clock.h"

namespace rollcall {
namespace {

constexpr int64_t kWaitForNs = 50'000'000;  // for all threads of a process
constexpr long kFirstNapNs = 100'000, kLastNapNs = 3'200'000;

bool IsCounted(const RawThread& thread) { return thread.is_main || HasPythonFrames(thread); }

bool WasWoken(const RawThread& thread) {
  return thread.how != HowTaken::kNotTouched && thread.how != HowTaken::kWatched;
}

// The count of the thread once it sleeps again; what it is at the deadline, or before, if it has
// ended.
uint64_t CountAgain(const std::string& proc_root, pid_t pid, const RawThread& before,
                    int64_t deadline_ns) {
  uint64_t count = before.switches;
  for (long nap_ns = kFirstNapNs;; nap_ns = std::min(2 * nap_ns, kLastNapNs)) {
    const absl::StatusOr<ProcThread> now = ReadProcThread(proc_root, pid, before.tid);
    if (!now.ok()) return count;
    count = std::max(count, now->switches);
    const bool will_sleep = before.state != 'R' && now->state == 'R';
    if (!will_sleep || MonotonicNs() > deadline_ns) return count;
    const timespec nap = {0, nap_ns};
    nanosleep(&nap, nullptr);
  }
}

}  // namespace

void CountSampleSwitches(const std::string& proc_root, RawSample* sample) {
  const int64_t deadline_ns = MonotonicNs() + kWaitForNs;
  int counted = 0;
  for (RawThread& thread : sample->threads) {
    if (counted == kMostCounted || !IsCounted(thread)) {
      thread.switches = 0;
    } else {
      ++counted;
    }
    if (thread.switches == 0 || !WasWoken(thread)) continue;
    const uint64_t now = CountAgain(proc_root, sample->pid, thread, deadline_ns);
    thread.sample_switches = now - thread.switches;
  }
}

}  // namespace rollcall
