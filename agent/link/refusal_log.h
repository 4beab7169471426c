// SPDX-License-Identifier: Apache-2.0
// Counts what the agent refuses to the daemon, and says when a line of the log is due.
//
// Pure: the caller gives the time. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>

namespace rollcall {

class RefusalLog {
 public:
  static constexpr int64_t kEveryNs = 60'000'000'000;

  // Returns the number of refusals since the start if a line is due: at the first refusal, then at
  // most once a minute.
  std::optional<uint64_t> Count(int64_t now_ns) {
    ++refused_;
    if (refused_ > 1 && now_ns - logged_ns_ < kEveryNs) return std::nullopt;
    logged_ns_ = now_ns;
    return refused_;
  }

 private:
  uint64_t refused_ = 0;
  int64_t logged_ns_ = 0;
};

}  // namespace rollcall
