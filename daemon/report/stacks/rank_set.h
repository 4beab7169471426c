// SPDX-License-Identifier: Apache-2.0
// A set of ranks as runs: thousands of neighbours cost as much as one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace rollcall {

class RankSet {
 public:
  // Cheapest in rising order.
  void Add(int32_t rank);

  size_t size() const { return size_; }
  bool operator==(const RankSet& other) const { return runs_ == other.runs_; }
  bool operator!=(const RankSet& other) const { return !(*this == other); }

  // First and last of each run, ascending.
  const std::vector<std::pair<int32_t, int32_t>>& runs() const { return runs_; }

  // "0-2,4-63"
  std::string ToString() const;
  // Parses the output of ToString(), and ignores other text.
  static RankSet Parse(const std::string& text);

 private:
  std::vector<std::pair<int32_t, int32_t>> runs_;
  size_t size_ = 0;
};

}  // namespace rollcall
