// SPDX-License-Identifier: Apache-2.0
// Weeks of UTC, from Monday, by their numbers.
#pragma once

#include <cstdint>

namespace rollcall {

inline constexpr int64_t kWeekNs = int64_t{7} * 86400 * 1'000'000'000;
// 1970-01-01 was a Thursday.
inline constexpr int64_t kFirstMondayNs = int64_t{-3} * 86400 * 1'000'000'000;

// The number of the week that has this time.
constexpr int64_t WeekOf(int64_t wall_ns) {
  // Times at the end of the range stand for "never".
  const int64_t since = wall_ns > INT64_MAX + kFirstMondayNs ? INT64_MAX : wall_ns - kFirstMondayNs;
  return since / kWeekNs - (since % kWeekNs < 0 ? 1 : 0);
}

constexpr int64_t BeginOfWeek(int64_t week) { return kFirstMondayNs + week * kWeekNs; }

}  // namespace rollcall
