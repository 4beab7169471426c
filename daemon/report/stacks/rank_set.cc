// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/stacks/rank_set.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

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

RankSet RankSet::Parse(const std::string& text) {
  RankSet set;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(part, absl::MaxSplits('-', 1));
    int32_t first = 0, last = 0;
    if (!absl::SimpleAtoi(ends.first, &first)) continue;
    if (!absl::SimpleAtoi(ends.second, &last)) last = first;
    if (last < first || (!set.runs_.empty() && first <= set.runs_.back().second)) continue;
    set.runs_.emplace_back(first, last);
    set.size_ += static_cast<size_t>(last) - static_cast<size_t>(first) + 1;
  }
  return set;
}

}  // namespace rollcall
