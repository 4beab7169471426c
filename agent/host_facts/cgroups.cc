// SPDX-License-Identifier: Apache-2.0
// The control groups of the job's processes: limits that hold them back, and groups that are frozen
// (Documentation/admin-guide/cgroup-v2.rst). Of version 1 only the freezer and the CPU limit.
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/host_facts/probes.h"

namespace rollcall {
namespace {

constexpr char kRoot[] = "/sys/fs/cgroup";

// The folders of a process's control groups; empty if it has none of that kind.
struct Groups {
  std::string unified;
  std::string freezer;  // of version 1, like the next
  std::string cpu;
};

bool Has(absl::string_view list, absl::string_view name) {
  for (const absl::string_view one : absl::StrSplit(list, ',')) {
    if (one == name) return true;
  }
  return false;
}

// A path with ".." lies outside what this process sees.
Groups GroupsOf(const HostFiles& files, pid_t pid) {
  Groups groups;
  const std::string text = files.Read(absl::StrCat("/proc/", pid, "/cgroup")).value_or("");
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3 || absl::StrContains(parts[2], "..")) continue;
    if (parts[1].empty()) groups.unified = absl::StrCat(kRoot, parts[2]);
    if (Has(parts[1], "freezer")) groups.freezer = absl::StrCat(kRoot, "/freezer", parts[2]);
    if (Has(parts[1], "cpu")) groups.cpu = absl::StrCat(kRoot, "/", parts[1], parts[2]);
  }
  return groups;
}

bool IsFrozen(const HostFiles& files, const Groups& groups) {
  if (!groups.unified.empty() &&
      files.Number(groups.unified + "/cgroup.events", "frozen ").value_or(0) == 1) {
    return true;
  }
  if (groups.freezer.empty()) return false;
  const auto state = files.Read(groups.freezer + "/freezer.state");
  return state.has_value() && *state != "THAWED";
}

struct GroupSample {
  int64_t throttled_ms = 0;
  int64_t memory_max = 0;
};

GroupSample Read(const HostFiles& files, const Groups& groups) {
  GroupSample sample;
  constexpr int64_t kUsOfMs = 1000, kNsOfMs = 1'000'000;
  if (!groups.unified.empty()) {
    sample.throttled_ms =
        files.Number(groups.unified + "/cpu.stat", "throttled_usec ").value_or(0) / kUsOfMs;
    sample.memory_max = files.Number(groups.unified + "/memory.events", "max ").value_or(0);
  }
  if (!groups.cpu.empty()) {
    sample.throttled_ms +=
        files.Number(groups.cpu + "/cpu.stat", "throttled_time ").value_or(0) / kNsOfMs;
  }
  return sample;
}

void Add(HostFactKind kind, pid_t pid, int64_t value, std::vector<Fact>* facts) {
  if (value > 0) facts->push_back({kind, "", value, "", 0, pid});
}

}  // namespace

ProbeResult ProbeCgroups(const ProbeInput& input) {
  ProbeResult result;
  const HostFiles& files = input.files;
  if (files.List(kRoot).empty()) {
    result.outcome = ProbeOutcome::kAbsent;
    result.note = absl::StrCat("nothing is mounted at ", kRoot);
    return result;
  }
  std::map<pid_t, std::pair<Groups, GroupSample>> before;
  for (const pid_t pid : input.pids) {
    const Groups groups = GroupsOf(files, pid);
    before[pid] = {groups, Read(files, groups)};
  }
  input.pause(input.interval_ns);
  for (const auto& [pid, seen] : before) {
    const auto& [groups, sample] = seen;
    if (IsFrozen(files, groups)) Add(HostFactKind::kCgroupFrozen, pid, 1, &result.facts);
    const GroupSample now = Read(files, groups);
    Add(HostFactKind::kCgroupThrottled, pid, now.throttled_ms - sample.throttled_ms, &result.facts);
    Add(HostFactKind::kCgroupMemory, pid, now.memory_max - sample.memory_max, &result.facts);
    if (groups.unified.empty()) continue;
    const auto kills = files.Number(groups.unified + "/memory.events", "oom_kill ");
    Add(HostFactKind::kCgroupOom, pid, kills.value_or(0), &result.facts);
  }
  return result;
}

}  // namespace rollcall
