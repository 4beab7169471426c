// SPDX-License-Identifier: Apache-2.0
#include "daemon/jobs/tick_gaps.h"

#include "base/durations.h"

namespace rollcall {
namespace {

constexpr int64_t kWindowSeconds = 20;
constexpr int64_t kInTimeNs = 500'000'000;
// Of fewer ticks, one that is late by itself would decide.
constexpr uint64_t kFewestTicks = 20;

}  // namespace

void TickGaps::Add(int64_t now_ns, int64_t late_ns) {
  size_t bucket = 0;
  while (bucket + 1 < kBuckets && late_ns > kInTimeNs << bucket) ++bucket;
  const int64_t second = now_ns / kSecond;
  if (seconds_.empty() || seconds_.back().second != second) {
    seconds_.push_back({second, {}});
    while (seconds_.front().second <= second - kWindowSeconds) seconds_.pop_front();
  }
  ++seconds_.back().counts[bucket];
}

int64_t TickGaps::Usual(int64_t now_ns, double share) const {
  std::array<uint64_t, kBuckets> counts = {};
  uint64_t all = 0;
  for (const Second& second : seconds_) {
    if (second.second <= now_ns / kSecond - kWindowSeconds) continue;
    for (size_t i = 0; i < kBuckets; ++i) {
      counts[i] += second.counts[i];
      all += second.counts[i];
    }
  }
  if (all < kFewestTicks) return 0;
  uint64_t within = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    within += counts[i];
    if (static_cast<double>(within) >= share * static_cast<double>(all)) {
      return i == 0 ? 0 : kInTimeNs << i;
    }
  }
  return kMostNs;  // for the compiler: all ticks are in a bucket
}

}  // namespace rollcall
