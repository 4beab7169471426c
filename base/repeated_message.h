// SPDX-License-Identifier: Apache-2.0
// A message that is logged when it changes, and again after an hour. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace rollcall {

class RepeatedMessage {
 public:
  static constexpr int64_t kHourS = 3600;

  // Whether to log `text` now; never for "".
  bool IsDue(const std::string& text, int64_t now_s) {
    const bool due = !text.empty() && (text != last_ || now_s - said_s_ >= kHourS);
    if (due) said_s_ = now_s;
    last_ = text;
    return due;
  }

 private:
  std::string last_;
  int64_t said_s_ = 0;
};

}  // namespace rollcall
