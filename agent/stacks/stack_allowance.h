// SPDX-License-Identifier: Apache-2.0
// How many stacks the agent takes: a token bucket. A daemon that asks without end cannot keep the
// processes of this host stopped.
//
// All users share it. A user who has taken much gets no more once less than a third of that is
// left, so the others always find some. What users have taken is forgotten at the bucket's rate,
// evenly. A process that takes long, because it has thousands of threads, counts as several.
//
// Pure: the caller gives the time. Thread-safe: the streams to several daemons share one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include "agent/processes/payer.h"
#include "base/mutex.h"

namespace rollcall {

class StackAllowance {
 public:
  static constexpr int64_t kBurst = 512;  // processes, after a calm time

  // `per_minute`: processes; 0 means no limit.
  explicit StackAllowance(int64_t per_minute)
      : every_ns_(per_minute <= 0 ? 0 : std::max<int64_t>(kMinuteNs / per_minute, 1)),
        full_ns_(every_ns_ * std::min(kBurst, std::max<int64_t>(per_minute, 1))),
        left_ns_(full_ns_) {}

  // Whether the agent may take the stacks of one more process of this user.
  bool Take(const Payer& user, int64_t now_ns) {
    const MutexLock lock(mutex_);
    const int64_t passed_ns = std::max<int64_t>(now_ns - looked_ns_, 0);
    looked_ns_ = std::max(looked_ns_, now_ns);
    left_ns_ = std::min(left_ns_ + passed_ns, full_ns_);
    if (!taken_ns_.empty()) Forgive(passed_ns / static_cast<int64_t>(taken_ns_.size()));
    if (left_ns_ < every_ns_) return false;
    const int64_t taken_ns = taken_ns_.count(user) == 0 ? 0 : taken_ns_[user];
    if (taken_ns + every_ns_ > kShare * left_ns_) return false;
    left_ns_ -= every_ns_;
    if (every_ns_ > 0) taken_ns_[user] = taken_ns + every_ns_;
    return true;
  }

  // The stacks of the user's process have taken so long.
  void Charge(const Payer& user, int64_t took_ns) {
    const MutexLock lock(mutex_);
    if (every_ns_ == 0 || took_ns <= kUsualNs) return;
    int64_t& taken_ns = taken_ns_[user];
    const int64_t more_ns = took_ns - kUsualNs;
    // What is beyond its share is taken from no one else.
    const int64_t share_ns = std::max<int64_t>(kShare * left_ns_ - taken_ns, 0) / (kShare + 1);
    left_ns_ -= std::min(more_ns, share_ns);
    taken_ns += more_ns;
  }

 private:
  static constexpr int64_t kUsualNs = 2'000'000'000;
  static constexpr int64_t kMinuteNs = 60'000'000'000;
  static constexpr int64_t kShare = 3;  // times what is left

  void Forgive(int64_t each_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (auto at = taken_ns_.begin(); at != taken_ns_.end();) {
      at->second -= each_ns;
      at = at->second <= 0 ? taken_ns_.erase(at) : std::next(at);
    }
  }

  const int64_t every_ns_, full_ns_;  // time stands for processes: one in each `every_ns_`
  Mutex mutex_;
  int64_t left_ns_ ABSL_GUARDED_BY(mutex_);
  int64_t looked_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<Payer, int64_t> taken_ns_ ABSL_GUARDED_BY(mutex_);  // by user
};

}  // namespace rollcall
