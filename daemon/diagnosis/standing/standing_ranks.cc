// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/standing/standing_ranks.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/durations.h"
#include "daemon/model/progress.h"
#include "daemon/rules/rules.h"

namespace rollcall {
namespace {

constexpr int64_t kOnTheWayNs = 3 * kSecond;  // from the due time of a sample to its arrival

// Launchers and data loaders inherit a rank, and an earlier attempt had the same ranks.
bool IsBetter(const Process& a, const Process& b) {
  const auto key = [](const Process& process) {
    const auto since = static_cast<int64_t>(process.start_time);
    return std::make_tuple(HasEnded(process), HasEnded(process) ? -since : since);
  };
  return key(a) < key(b);
}

std::map<int32_t, int32_t> ByRank(const JobState& job) {
  std::map<int32_t, int32_t> ranks;
  for (size_t i = 0; i < job.processes.size(); ++i) {
    const Process& process = job.processes[i];
    if (process.global_rank < 0) continue;
    const auto index = static_cast<int32_t>(i);
    const auto [at, is_new] = ranks.emplace(process.global_rank, index);
    if (!is_new && IsBetter(process, job.processes[static_cast<size_t>(at->second)])) {
      at->second = index;
    }
  }
  return ranks;
}

bool Stands(const JobState& job, int32_t index, int64_t oldest_ns) {
  const Process& process = job.processes[static_cast<size_t>(index)];
  if (process.standing == nullptr || process.traced || IsSuspended(process)) return false;
  return process.standing->newest_ns >= oldest_ns && !process.standing->rests &&
         IsHeard(job, index);
}

// Another process with the number of a rank may be what the ranks wait for: one that MPI has
// spawned. False if one of them works.
bool AddOthers(const JobState& job, const std::map<int32_t, int32_t>& ranks, StandingRanks* found) {
  for (size_t i = 0; i < job.processes.size(); ++i) {
    const Process& process = job.processes[i];
    if (process.global_rank < 0 || process.liveness != Liveness::kAlive) continue;
    if (ranks.at(process.global_rank) == static_cast<int32_t>(i)) continue;
    if (process.quiet_since_ns > found->since_ns) return false;
    if (process.standing == nullptr) continue;
    // What sleeps in a loop may compute a little each time.
    const bool sleeps = process.standing->place.in.kind == StandKind::kSleep;
    if (process.standing->rests || sleeps) return false;
    found->since_ns = std::max(found->since_ns, process.standing->since_ns);
  }
  return true;
}

}  // namespace

std::optional<StandingRanks> FindStandingRanks(const JobState& job, int64_t now_ns,
                                               const Limits& limits) {
  const int64_t oldest_ns = now_ns - 2 * StartRoundNs(job.processes.size(), limits) - kOnTheWayNs;
  StandingRanks found;
  found.seen_ns = now_ns;
  const std::map<int32_t, int32_t> ranks = ByRank(job);
  for (const auto& [rank, index] : ranks) {
    const Process& process = job.processes[static_cast<size_t>(index)];
    if (HasEnded(process)) {
      // Its end may be what the others waited for, as the release of a lock is. A look only shows
      // that it has ended.
      if (!limits.is_look) found.since_ns = std::max(found.since_ns, process.ended_ns);
      found.ended.push_back(index);
      continue;
    }
    if (limits.is_look && IsSuspended(process)) {
      found.stopped.push_back(index);
      continue;
    }
    if (!Stands(job, index, oldest_ns)) return std::nullopt;
    found.processes.push_back(index);
    found.since_ns = std::max(found.since_ns, process.standing->since_ns);
    found.seen_ns = std::min(found.seen_ns, process.standing->newest_ns);
  }
  const size_t count = found.processes.size() + found.ended.size() + found.stopped.size();
  if (found.processes.empty() || count < 2) return std::nullopt;
  if (!AddOthers(job, ranks, &found)) return std::nullopt;
  return found;
}

}  // namespace rollcall
