// SPDX-License-Identifier: Apache-2.0
// A message that is said when it changes, and again after some time. Pure.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace rollcall {

class RepeatedMessage {
 public:
  static constexpr int64_t kHourS = 3600;
  static constexpr int64_t kOnce = std::numeric_limits<int64_t>::max();

  explicit RepeatedMessage(int64_t again_after_s = kHourS) : again_after_s_(again_after_s) {}

  // Whether to say `text` now; never for "".
  bool IsDue(const std::string& text, int64_t now_s) {
    const bool due = !text.empty() && (text != last_ || now_s - said_s_ >= again_after_s_);
    if (due) said_s_ = now_s;
    last_ = text;
    return due;
  }

 private:
  const int64_t again_after_s_;
  std::string last_;
  int64_t said_s_ = 0;
};

}  // namespace rollcall
