// SPDX-License-Identifier: Apache-2.0
#include "daemon/jobs/known_hosts.h"

#include <algorithm>
#include <utility>

namespace rollcall {

namespace {

// More than the largest job has. A process may claim any number.
constexpr size_t kMostRanks = size_t{1} << 20;

// How many of the ranks below `world` processes have. Runs in each diagnosis of some jobs, with
// other jobs waiting: one pass and no sort.
size_t CountDistinctRanks(const JobState& state, size_t world) {
  std::vector<bool> is_known(std::min(world, kMostRanks));
  size_t count = 0;
  for (const Process& process : state.processes) {
    if (process.global_rank < 0) continue;
    const auto rank = static_cast<size_t>(process.global_rank);
    if (rank >= is_known.size() || is_known[rank]) continue;
    is_known[rank] = true;
    ++count;
  }
  return count;
}

}  // namespace

RankCount CountRanks(const JobState& state) {
  int32_t world = 0;
  for (const Process& process : state.processes) world = std::max(world, process.world_size);
  if (world > 0) {
    const auto all = static_cast<size_t>(world);
    return {all, all - CountDistinctRanks(state, all)};
  }
  RankCount count;
  for (const auto& [id, comm] : state.communicators) {
    const auto size = static_cast<size_t>(std::max(comm.size, 0));
    const size_t unreported = size - std::min(size, comm.members.size());
    if (unreported > count.unreported) count = {size, unreported};
  }
  return count;
}

void KnownHosts::Restore(const std::set<std::string>& hosts) {
  missing_.clear();
  for (const std::string& host : hosts) {
    if (recorded_.insert(host).second) missing_.insert(host);
  }
}

std::vector<std::string> KnownHosts::Update(const JobState& state, int64_t now_ns) {
  if (!missing_.empty()) {
    for (const AgentState& agent : state.agents) {
      // Its first ticks may hold a part of its state only.
      if (agent.is_settled && !agent.silent) missing_.erase(agent.host);
    }
  }
  if (recorded_ns_ == 0) recorded_ns_ = now_ns;
  const bool is_old = now_ns - recorded_ns_ >= kRecordEveryNs;
  if (agents_ == state.agents.size() && !recorded_.empty() && !is_old) return {};
  agents_ = state.agents.size();
  if (is_old) {
    recorded_ns_ = now_ns;
    recorded_.clear();
  }
  std::vector<std::string> fresh;
  for (const AgentState& agent : state.agents) {
    if (recorded_.insert(agent.host).second) fresh.push_back(agent.host);
  }
  return fresh;
}

}  // namespace rollcall
