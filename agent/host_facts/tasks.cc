// SPDX-License-Identifier: Apache-2.0
// Threads of the job's processes that wait in the kernel in state D at both looks. Such a thread
// takes no signal: it waits for a disk, a file server or a driver.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agent/host_facts/probes.h"
#include "agent/processes/proc_stat.h"

namespace rollcall {
namespace {

constexpr size_t kMostThreads = 2048;  // of a process

// Returns the threads in state D, and the number of their context switches: one that has run in
// between was not blocked all the time.
std::map<std::string, int64_t> BlockedThreads(const HostFiles& files, const std::string& folder) {
  std::map<std::string, int64_t> blocked;
  const std::vector<std::string> tids = files.List(folder);
  for (size_t i = 0; i < tids.size() && i < kMostThreads; ++i) {
    const auto stat =
        ParseProcStat(files.Read(absl::StrCat(folder, "/", tids[i], "/stat")).value_or(""));
    if (!stat.ok() || stat->state != 'D') continue;
    blocked[tids[i]] =
        files.Number(absl::StrCat(folder, "/", tids[i], "/status"), "voluntary_ctxt_switches:")
            .value_or(0);
  }
  return blocked;
}

std::string WaitChannel(const HostFiles& files, const std::string& thread) {
  const std::string channel = files.Read(absl::StrCat(thread, "/wchan")).value_or("");
  return channel.empty() || channel == "0" ? "an unknown function" : channel;
}

}  // namespace

ProbeResult ProbeTasks(const ProbeInput& input) {
  ProbeResult result;
  std::map<pid_t, std::map<std::string, int64_t>> before;
  const auto folder_of = [](pid_t pid) { return absl::StrCat("/proc/", pid, "/task"); };
  for (const pid_t pid : input.pids) before[pid] = BlockedThreads(input.files, folder_of(pid));
  input.pause(input.interval_ns);
  for (const auto& [pid, threads] : before) {
    if (threads.empty()) continue;
    Fact fact;
    for (const auto& [tid, switches] : BlockedThreads(input.files, folder_of(pid))) {
      const auto first = threads.find(tid);
      if (first == threads.end() || first->second != switches) continue;
      if (++fact.value > 1) continue;
      fact.text = WaitChannel(input.files, absl::StrCat(folder_of(pid), "/", tid));
    }
    if (fact.value == 0) continue;
    fact.kind = HostFactKind::kTaskBlocked;
    fact.pid = pid;
    result.facts.push_back(std::move(fact));
  }
  return result;
}

}  // namespace rollcall
