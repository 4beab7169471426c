// SPDX-License-Identifier: Apache-2.0
#include "agent/outside/descendants.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "agent/outside/moved_bytes.h"
#include "agent/processes/proc_files.h"
#include "agent/processes/proc_stat.h"
#include "base/durations.h"

namespace rollcall {
namespace {

constexpr size_t kMostParentThreads = 1024;

uint64_t NsOfTicks(uint64_t ticks) {
  static const uint64_t ns = kSecond / static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  return ticks * ns;
}

// The kernel's clock of starts goes on while the machine sleeps.
uint64_t AgeOf(const ProcStat& stat) {
  timespec now = {};
  clock_gettime(CLOCK_BOOTTIME, &now);
  const uint64_t now_ns =
      static_cast<uint64_t>(now.tv_sec) * kSecond + static_cast<uint64_t>(now.tv_nsec);
  const uint64_t start_ns = NsOfTicks(stat.start_time);
  return now_ns > start_ns ? now_ns - start_ns : 1;
}

std::vector<pid_t> ListChildren(const std::string& proc_root, pid_t pid) {
  std::vector<pid_t> children;
  const std::string tasks = ProcPath(proc_root, pid, "task");
  std::vector<pid_t> tids = ListNumbers(tasks).value_or(std::vector<pid_t>());
  if (tids.size() > kMostParentThreads) tids.resize(kMostParentThreads);
  for (const pid_t tid : tids) {
    const std::string list = ReadProcFile(absl::StrCat(tasks, "/", tid, "/children")).value_or("");
    for (const absl::string_view word : absl::StrSplit(list, ' ', absl::SkipWhitespace())) {
      pid_t child = 0;
      if (absl::SimpleAtoi(word, &child)) children.push_back(child);
    }
  }
  std::sort(children.begin(), children.end());
  return children;
}

void AddChildren(const std::string& proc_root, pid_t parent, std::vector<Descendant>* found) {
  for (const pid_t pid : ListChildren(proc_root, parent)) {
    if (found->size() == kMostDescendants) return;
    std::optional<Descendant> child = DescribeProcess(proc_root, pid);
    // The child may have ended, and its number be another process's by now.
    if (child.has_value() && child->parent == parent) found->push_back(*std::move(child));
  }
}

}  // namespace

std::optional<Descendant> DescribeProcess(const std::string& proc_root, pid_t pid) {
  absl::StatusOr<ProcStat> stat = ReadProcStat(proc_root, pid);
  if (!stat.ok()) return std::nullopt;
  Descendant found;
  found.pid = pid;
  found.parent = stat->ppid;
  found.start_time = stat->start_time;
  found.name = std::move(stat->name);
  found.state = stat->state;
  found.cpu_ns = NsOfTicks(stat->cpu_ticks + stat->children_ticks);
  found.moved_bytes = ReadMovedBytes(proc_root, pid).value_or(0);
  found.age_ns = AgeOf(*stat);
  found.own_session = stat->session == pid;
  return found;
}

Descendants FindDescendants(const std::string& proc_root, pid_t pid) {
  Descendants found;
  const absl::StatusOr<ProcStat> own = ReadProcStat(proc_root, pid);
  if (!own.ok()) return found;
  found.ended_cpu_ns = NsOfTicks(own->children_ticks);
  AddChildren(proc_root, pid, &found.processes);
  for (size_t i = 0; i < found.processes.size(); ++i) {
    AddChildren(proc_root, found.processes[i].pid, &found.processes);
  }
  return found;
}

std::vector<pid_t> ListDescendants(const std::string& proc_root, pid_t pid) {
  std::vector<pid_t> found = ListChildren(proc_root, pid);
  for (size_t i = 0; i < found.size() && found.size() < kMostDescendants; ++i) {
    const std::vector<pid_t> below = ListChildren(proc_root, found[i]);
    found.insert(found.end(), below.begin(), below.end());
  }
  if (found.size() > kMostDescendants) found.resize(kMostDescendants);
  return found;
}

}  // namespace rollcall
