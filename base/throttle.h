// SPDX-License-Identifier: Apache-2.0
// Says something rarely, and counts the rest: some at once, then one in each interval. A calm time
// saves up that many again.
//
// Pure: the caller gives the time. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace rollcall {

class Throttle {
 public:
  static constexpr int64_t kMinuteNs = 60'000'000'000;

  // `every_ns`: the interval; 0 means no limit. `at_once`: how many need no interval.
  explicit Throttle(int64_t every_ns = kMinuteNs, int64_t at_once = 1)
      : every_ns_(every_ns), full_ns_(every_ns * at_once), saved_ns_(full_ns_) {}

  // How many were left out since the last one that was not; nullopt if this one is left out, too.
  // `now_ns`: on a clock that never goes back; a little earlier than before does no harm.
  std::optional<uint64_t> Take(int64_t now_ns) {
    saved_ns_ = SavedAt(now_ns);
    looked_ns_ = std::max(looked_ns_, now_ns);
    ++total_;
    if (saved_ns_ < every_ns_) {
      ++left_out_;
      return std::nullopt;
    }
    saved_ns_ -= every_ns_;
    return std::exchange(left_out_, 0);
  }

  // All calls of Take().
  uint64_t total() const { return total_; }

  // Whether Take() would leave it out.
  bool IsClosed(int64_t now_ns) const { return SavedAt(now_ns) < every_ns_; }

 private:
  int64_t SavedAt(int64_t now_ns) const {
    return std::min(saved_ns_ + std::max<int64_t>(now_ns - looked_ns_, 0), full_ns_);
  }

  int64_t every_ns_, full_ns_;
  int64_t saved_ns_;
  int64_t looked_ns_ = 0;
  uint64_t left_out_ = 0;
  uint64_t total_ = 0;
};

}  // namespace rollcall
