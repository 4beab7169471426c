// SPDX-License-Identifier: Apache-2.0
#include "agent/collector/mesh_search.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "base/monotonic_clock.h"

namespace rollcall {

const std::map<ProcessId, pid_t>& MeshSearch::Find(
    uint64_t scan, const std::vector<Candidate>& candidates,
    const std::function<bool(pid_t, pid_t)>& is_above) {
  if (searched_in_ != 0 && scan - searched_in_ < kEvery) return found_;
  std::map<int64_t, std::vector<const Candidate*>> of_user;
  for (const Candidate& candidate : candidates) {
    std::vector<const Candidate*>& own = of_user[candidate.payer];
    if (own.size() < kMostOfUser) own.push_back(&candidate);
  }
  // Nothing to search: the first two processes need not wait for their turn.
  searched_in_ = candidates.size() < kFewest ? 0 : scan;
  found_.clear();
  size_t users = 0;
  for (const auto& [payer, own] : of_user) {
    if (own.size() >= kFewest && ++users <= kMostUsers) SearchUser(payer, own, is_above);
  }
  return found_;
}

void MeshSearch::SearchUser(int64_t payer, const std::vector<const Candidate*>& candidates,
                            const std::function<bool(pid_t, pid_t)>& is_above) {
  std::vector<Talker> talkers;
  std::vector<pid_t> pids;
  std::map<pid_t, ProcessId> ids;
  for (const Candidate* candidate : candidates) {
    talkers.push_back(candidate->talker);
    pids.push_back(candidate->process.pid);
    ids[candidate->process.pid] = candidate->process;
  }
  const auto pairs = threads_->Get<std::vector<ConnectedPair>>(
      absl::StrCat("connections of ", payer),
      [root = proc_root_, pids, within_ns = timeout_ns_ / 3 * 2] {
        return FindConnections(root, pids, MonotonicNs() + within_ns);
      },
      timeout_ns_, payer);
  if (!pairs.has_value()) return;
  for (const auto& [pid, first] : FindMeshes(talkers, *pairs, is_above)) found_[ids[pid]] = first;
}

}  // namespace rollcall
