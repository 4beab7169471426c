// SPDX-License-Identifier: Apache-2.0
// Limits the time that wrong passwords cost. A check takes about a tenth of a second of CPU by
// intent, and the limit on failed logins is one for each network, of which a stranger may have
// thousands.
//
// Thread-safe. Time is an argument, in nanoseconds of any clock that does not go back.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/mutex.h"

namespace rollcall {

class PasswordBudget {
 public:
  struct Limits {
    int64_t most_spent_ns = 10'000'000'000;  // of CPU, before others must wait
    double share = 0.25;                     // of one core that comes back
    int at_once = 8;                         // checks; the page's other threads stay free
  };

  PasswordBudget() : PasswordBudget(Limits()) {}
  explicit PasswordBudget(const Limits& limits) : limits_(limits) {}

  // Seconds until a check may begin; 0 means now, and End() must follow.
  int Begin(int64_t now_ns) {
    const MutexLock lock(mutex_);
    const auto back =
        static_cast<int64_t>(static_cast<double>(now_ns - looked_ns_) * limits_.share);
    spent_ns_ = std::max<int64_t>(0, spent_ns_ - std::max<int64_t>(0, back));
    looked_ns_ = std::max(looked_ns_, now_ns);
    if (spent_ns_ >= limits_.most_spent_ns) {
      const auto missing = static_cast<double>(spent_ns_ - limits_.most_spent_ns);
      return 1 + static_cast<int>(missing / limits_.share / 1e9);
    }
    if (running_ >= limits_.at_once) return 1;
    ++running_;
    return 0;
  }

  // A right password costs nothing: it is remembered.
  void End(bool was_right, int64_t cpu_ns) {
    const MutexLock lock(mutex_);
    --running_;
    if (!was_right) spent_ns_ += cpu_ns;
  }

 private:
  const Limits limits_;
  Mutex mutex_;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t spent_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t looked_ns_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace rollcall
