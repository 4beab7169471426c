// SPDX-License-Identifier: Apache-2.0
#include "agent/link/child_stacks.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "agent/processes/payer.h"
#include "agent/processes/proc_stat.h"

namespace rollcall {
namespace {

constexpr size_t kMostThreads = 4;
constexpr size_t kMostThreadsLookedAt = 256;
constexpr size_t kMostFrames = 32;  // with the mark of those that are left out
constexpr absl::string_view kAnswers = "SDR", kStopped = "Tt";

bool HasState(const v1::ChildProcess& child, absl::string_view states) {
  return child.state().size() == 1 && states.find(child.state()[0]) != absl::string_view::npos;
}

}  // namespace

TakeLimits LimitsOfChildren() {
  TakeLimits limits;
  limits.program_threads = kMostThreads;
  limits.kept_frames = kMostFrames - 1;
  limits.all_stack_bytes = 4 << 20;
  limits.total_timeout_ns = 500'000'000;
  limits.most_timeout_ns = 2'000'000'000;
  return limits;
}

std::vector<int> ChildrenToSample(const v1::ProcessStack& stack) {
  std::vector<int> chosen;
  for (const absl::string_view states : {kAnswers, kStopped}) {
    for (int i = 0; i < stack.children_size() && chosen.size() < kMostSampledChildren; ++i) {
      if (HasState(stack.children(i), states)) chosen.push_back(i);
    }
  }
  return chosen;
}

uint64_t LookAtChild(const std::string& proc_root, pid_t of, pid_t parent, pid_t child) {
  const absl::StatusOr<ProcStat> stat = ReadProcStat(proc_root, child);
  if (!stat.ok() || stat->ppid != parent || !HaveSameUser(proc_root, of, child)) return 0;
  return stat->start_time;
}

bool HidesAWait(const std::string& proc_root, pid_t pid, const std::vector<pid_t>& sampled) {
  const absl::StatusOr<ProcThreads> found = ReadProcThreads(proc_root, pid, kMostThreadsLookedAt);
  if (!found.ok() || found->left_out) return true;
  return std::any_of(found->threads.begin(), found->threads.end(), [&](const ProcThread& thread) {
    const bool is_sampled = std::find(sampled.begin(), sampled.end(), thread.tid) != sampled.end();
    return !is_sampled && !absl::StrContains(thread.wchan, "futex");
  });
}

void AddChildThreads(v1::ProcessStack taken, v1::ChildProcess* child) {
  // Subtracts what the samples have read.
  if (taken.has_moved_bytes()) child->set_moved_bytes(taken.moved_bytes());
  for (v1::ThreadStack& thread : *taken.mutable_threads()) {
    if (!thread.frames().empty()) *child->add_threads() = std::move(thread);
  }
}

}  // namespace rollcall
