// SPDX-License-Identifier: Apache-2.0
#include "daemon/jobs/call_rate.h"

#include <algorithm>

namespace rollcall {

void CallRate::Count(int64_t now_ns, uint64_t calls, int32_t ranks) {
  if (last_ns_ != 0 && now_ns > last_ns_) {
    // The count drops when the job forgets a rank with its calls.
    const uint64_t made = calls > last_calls_ ? calls - last_calls_ : 0;
    const double seconds = static_cast<double>(now_ns - last_ns_) / 1e9;
    history_.push_back(static_cast<double>(made) / seconds / std::max(ranks, 1));
    if (history_.size() > kKept) history_.pop_front();
  }
  last_ns_ = now_ns;
  last_calls_ = calls;
}

bool CallRates::IsDue(const JobKey& key, int64_t now_ns) const {
  const MutexLock lock(mutex_);
  const auto known = rates_.find(key);
  return known == rates_.end() || known->second.IsDue(now_ns);
}

void CallRates::Count(const JobKey& key, int64_t now_ns, uint64_t calls, int32_t ranks) {
  const MutexLock lock(mutex_);
  rates_[key].Count(now_ns, calls, ranks);
}

void CallRates::Forget(const JobKey& key) {
  const MutexLock lock(mutex_);
  rates_.erase(key);
}

CallRate CallRates::Get(const JobKey& key) const {
  const MutexLock lock(mutex_);
  const auto known = rates_.find(key);
  return known == rates_.end() ? CallRate() : known->second;
}

double CallRates::Now(const JobKey& key) const {
  const MutexLock lock(mutex_);
  const auto known = rates_.find(key);
  return known == rates_.end() ? 0 : known->second.now();
}

}  // namespace rollcall
