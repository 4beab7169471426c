// SPDX-License-Identifier: Apache-2.0
#include "daemon/rules/members/world_ranks.h"

#include <algorithm>
#include <tuple>

namespace rollcall {
namespace {

using Table = std::vector<RankedProcess>;

bool IsBefore(const RankedProcess& a, const RankedProcess& b) { return a.first < b.first; }

// True if process `a` represents its rank better than `b`. Launchers, wrappers and data-loader
// workers inherit the environment of the rank and the library. So the best process is one that
// uses NCCL, else one that is alive, else the first.
bool IsBetter(const Process& a, const Process& b) {
  const auto key = [](const Process& p) {
    return std::make_tuple(!p.has_segment, HasEnded(p), p.start_time, p.pid);
  };
  return key(a) < key(b);
}

// Puts the table in order, and keeps the best process of each rank.
void KeepBest(const JobState& job, Table* table) {
  if (!std::is_sorted(table->begin(), table->end(), IsBefore)) {
    std::stable_sort(table->begin(), table->end(), IsBefore);
  }
  const auto process_of = [&job](const RankedProcess& entry) -> const Process& {
    return job.processes[static_cast<size_t>(entry.second)];
  };
  auto last = table->begin();
  for (auto at = table->begin(); at != table->end(); ++at) {
    if (at == table->begin()) continue;
    if (at->first != last->first) {
      *++last = *at;
    } else if (IsBetter(process_of(*at), process_of(*last))) {
      last->second = at->second;
    }
  }
  if (!table->empty()) table->erase(last + 1, table->end());
}

}  // namespace

std::optional<int32_t> WorldRanks::FindProcess(int32_t rank) const {
  const RankedProcess wanted(rank, -1);
  for (const Table* table : {&own_, &any_}) {
    if (table == &any_ && rank >= size_) break;
    const auto at = std::lower_bound(table->begin(), table->end(), wanted, IsBefore);
    if (at != table->end() && at->first == rank) return at->second;
  }
  return std::nullopt;
}

std::optional<RankedProcess> WorldRanks::Next(Cursor* at) const {
  const bool has_own = at->own < own_.size();
  const bool has_any = at->any < any_.size() && any_[at->any].first < size_;
  if (!has_own && !has_any) return std::nullopt;
  if (!has_own || (has_any && any_[at->any].first < own_[at->own].first)) return any_[at->any++];
  if (has_any && any_[at->any].first == own_[at->own].first) ++at->any;
  return own_[at->own++];
}

Worlds::Worlds(const JobState& job) {
  std::vector<RankedProcess>* table = nullptr;  // of the process before: most have the same size
  int32_t size = 0;
  for (size_t i = 0; i < job.processes.size(); ++i) {
    const Process& process = job.processes[i];
    if (process.global_rank < 0) continue;
    if (table == nullptr || process.world_size != size) table = &by_size_[process.world_size];
    size = process.world_size;
    table->emplace_back(process.global_rank, static_cast<int32_t>(i));
  }
  if (by_size_.size() > 1) {
    for (const auto& [told, ranks] : by_size_) any_.insert(any_.end(), ranks.begin(), ranks.end());
    std::sort(any_.begin(), any_.end());
    KeepBest(job, &any_);
  }
  for (auto& [told, ranks] : by_size_) KeepBest(job, &ranks);
}

WorldRanks Worlds::OfSize(int32_t size) const {
  const auto own = by_size_.find(size);
  return {own == by_size_.end() ? none_ : own->second, any_, size};
}

WorldRanks Worlds::ToldSize(int32_t size) const {
  const auto own = by_size_.find(size);
  return {own == by_size_.end() ? none_ : own->second, none_, size};
}

}  // namespace rollcall
