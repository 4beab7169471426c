// SPDX-License-Identifier: Apache-2.0
#include "daemon/words/rank_ranges.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace rollcall {
namespace {

constexpr size_t kMostRanges = 24;  // in a sentence
constexpr size_t kNamedRanges = 8;  // where there are more

// Whether `rank` follows `last` at once. -1, an unknown rank, is not a neighbour of rank 0.
bool Follows(int32_t last, int32_t rank) { return rank > 0 && rank - 1 == last; }

}  // namespace

RankRanges::RankRanges(std::vector<RankRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const RankRange& a, const RankRange& b) { return a.first < b.first; });
  for (const RankRange& range : ranges) Append(range);
}

RankRanges::RankRanges(std::vector<int32_t> ranks) {
  std::sort(ranks.begin(), ranks.end());
  for (const int32_t rank : ranks) Append({rank, rank});
}

void RankRanges::Append(const RankRange& range) {
  const bool joins = !ranges_.empty() && (range.first <= ranges_.back().last ||
                                          Follows(ranges_.back().last, range.first));
  if (!joins) return ranges_.push_back(range);
  ranges_.back().last = std::max(ranges_.back().last, range.last);
}

void RankRanges::Add(int32_t rank) {
  if (ranges_.empty() || rank >= ranges_.back().first) return Append({rank, rank});
  // The first range that ends just before the rank, or later.
  const auto at = std::lower_bound(ranges_.begin(), ranges_.end(), rank,
                                   [](const RankRange& range, int32_t wanted) {
                                     return range.last < wanted && !Follows(range.last, wanted);
                                   });
  if (rank < at->first) {
    if (Follows(rank, at->first)) {
      at->first = rank;
    } else {
      ranges_.insert(at, {rank, rank});
    }
  } else if (rank > at->last) {
    at->last = rank;
    const auto next = std::next(at);
    if (next == ranges_.end() || !Follows(rank, next->first)) return;
    at->last = next->last;
    ranges_.erase(next);
  }
}

bool RankRanges::operator==(const RankRanges& other) const {
  return std::equal(ranges_.begin(), ranges_.end(), other.ranges_.begin(), other.ranges_.end(),
                    [](const RankRange& a, const RankRange& b) {
                      return a.first == b.first && a.last == b.last;
                    });
}

RankRanges::RankRanges(const std::string& list) {
  std::vector<RankRange> ranges;
  for (const absl::string_view part : absl::StrSplit(list, ',', absl::SkipEmpty())) {
    const size_t dash = part.find('-', 1);  // a rank that is not known is -1
    RankRange range;
    if (!absl::SimpleAtoi(part.substr(0, dash), &range.first)) continue;
    range.last = range.first;
    if (dash != absl::string_view::npos && !absl::SimpleAtoi(part.substr(dash + 1), &range.last)) {
      continue;
    }
    if (range.first <= range.last) ranges.push_back(range);
  }
  *this = RankRanges(std::move(ranges));
}

size_t RankRanges::Length(const RankRange& range) {
  return static_cast<size_t>(int64_t{range.last} - range.first + 1);
}

size_t RankRanges::size() const {
  size_t count = 0;
  for (const RankRange& range : ranges_) count += Length(range);
  return count;
}

std::vector<int32_t> RankRanges::First(size_t most) const {
  std::vector<int32_t> ranks;
  ranks.reserve(std::min(most, size()));
  for (const RankRange& range : ranges_) {
    const size_t count = std::min(Length(range), most - ranks.size());
    for (size_t i = 0; i < count; ++i) ranks.push_back(range.first + static_cast<int32_t>(i));
  }
  return ranks;
}

bool RankRanges::Contains(int32_t rank) const {
  auto after =
      std::upper_bound(ranges_.begin(), ranges_.end(), rank,
                       [](int32_t wanted, const RankRange& r) { return wanted < r.first; });
  return after != ranges_.begin() && std::prev(after)->last >= rank;
}

std::string RankRanges::List(size_t count) const {
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    const RankRange& range = ranges_[i];
    absl::StrAppend(&text, i == 0 ? "" : ",", range.first);
    if (range.last != range.first) absl::StrAppend(&text, "-", range.last);
  }
  return text;
}

std::string RankRanges::List() const { return List(ranges_.size()); }

std::string RankRanges::InWords() const {
  const size_t named = ranges_.size() > kMostRanges ? kNamedRanges : ranges_.size();
  size_t more = 0;
  for (size_t i = named; i < ranges_.size(); ++i) more += Length(ranges_[i]);
  return absl::StrCat(size() <= 1 ? "rank " : "ranks ", List(named),
                      more == 0 ? "" : absl::StrCat(" and ", more, " more"));
}

}  // namespace rollcall
