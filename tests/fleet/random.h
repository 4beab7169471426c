// SPDX-License-Identifier: Apache-2.0
// Numbers that look random and are the same in each run.
#pragma once

#include <cstdint>

namespace rollcall::fleet {

// splitmix64.
constexpr uint64_t Scramble(uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

// One owner.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(Scramble(seed)) {}

  // From 0 to below `limit`; 0 where `limit` is not positive.
  int64_t Below(int64_t limit) {
    state_ = Scramble(state_);
    return limit <= 0 ? 0 : static_cast<int64_t>(state_ % static_cast<uint64_t>(limit));
  }

 private:
  uint64_t state_;
};

}  // namespace rollcall::fleet
