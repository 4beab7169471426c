#include "daemon/stacks/rank_set.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace rollcall {

void RankSet::Add(int32_t rank) {
  if (runs_.empty() || rank > runs_.back().second + 1) {
    runs_.emplace_back(rank, rank);
    ++size_;
    return;
  }
  std::pair<int32_t, int32_t>& last = runs_.back();
  if (rank > last.second) {
    last.second = rank;
    ++size_;
    return;
  }
  if (rank >= last.first) return;
  // The first run that ends at the rank before this one, or later.
  auto run = std::lower_bound(
      runs_.begin(), runs_.end(), rank,
      [](const std::pair<int32_t, int32_t>& a, int32_t r) { return a.second + 1 < r; });
  if (rank >= run->first && rank <= run->second) return;
  ++size_;
  if (rank + 1 < run->first) {
    runs_.insert(run, {rank, rank});
  } else if (rank + 1 == run->first) {
    run->first = rank;
  } else {
    run->second = rank;
    const auto next = run + 1;
    if (next != runs_.end() && next->first == rank + 1) {
      run->second = next->second;
      runs_.erase(next);
    }
  }
}

std::string RankSet::ToString() const {
  std::string text;
  for (const auto& [first, last] : runs_) {
    absl::StrAppend(&text, text.empty() ? "" : ",", first);
    if (last != first) absl::StrAppend(&text, "-", last);
  }
  return text;
}

}  // namespace rollcall
