// SPDX-License-Identifier: Apache-2.0
// How many lines of a log may be written now: a burst, and then some a second. Time is data. One
// owner.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/durations.h"

namespace rollcall {

class LineBudget {
 public:
  static constexpr int64_t kBurst = 100;
  static constexpr int64_t kPerSecond = 10;

  // Whether one more line may be written at `now_ns`, on a clock that never goes back.
  bool Take(int64_t now_ns) {
    room_ns_ = std::min(room_ns_ + now_ns - last_ns_, kBurst * kLineNs);
    last_ns_ = now_ns;
    if (room_ns_ < kLineNs) return false;
    room_ns_ -= kLineNs;
    return true;
  }

 private:
  static constexpr int64_t kLineNs = kSecond / kPerSecond;

  int64_t room_ns_ = kBurst * kLineNs;
  int64_t last_ns_ = 0;
};

}  // namespace rollcall
