// SPDX-License-Identifier: Apache-2.0
// A set of ranks as text, and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "daemon/model/rank_range.h"

namespace rollcall {

// A set of ranks, as ranges in order.
class RankRanges {
 public:
  RankRanges() = default;  // no rank
  explicit RankRanges(std::vector<int32_t> ranks);
  explicit RankRanges(std::vector<RankRange> ranges);  // in any order; they may overlap
  // Parses the result of List(). Leaves out what is not a range.
  explicit RankRanges(const std::string& list);

  // Cheapest in ascending order.
  void Add(int32_t rank);

  bool operator==(const RankRanges& other) const;
  bool operator!=(const RankRanges& other) const { return !(*this == other); }
  bool Contains(int32_t rank) const;
  bool empty() const { return ranges_.empty(); }
  size_t size() const;  // number of ranks
  // Apart from each other, in order.
  const std::vector<RankRange>& ranges() const { return ranges_; }
  // Returns the lowest ranks, `most` at most.
  std::vector<int32_t> First(size_t most) const;

  // "0-7,12"
  std::string List() const;

  // "rank 12", "ranks 0-7,12", "ranks 0,2,4,6,8,10,12,14 and 49992 more": names a handful if the
  // list would be long.
  std::string InWords() const;

 private:
  static size_t Length(const RankRange& range);
  void Append(const RankRange& range);   // begins at the last range or after it
  std::string List(size_t count) const;  // of the first ranges

  std::vector<RankRange> ranges_;
};

}  // namespace rollcall
