// SPDX-License-Identifier: Apache-2.0
// Whole numbers and times from messages. Their sender may be damaged, hostile or of another release, so
// a value that int64_t cannot hold becomes the nearest one that leaves room for a sum. NaN becomes 0.
// Include this from .cc files only, as durations.h.
#pragma once

#include <google/protobuf/timestamp.pb.h>

#include <algorithm>
#include <cstdint>

#include "base/durations.h"

namespace rollcall {

inline constexpr double kLargestWhole = 4e18;

inline int64_t WholeNumber(double value) {
  if (value != value) return 0;
  return static_cast<int64_t>(std::clamp(value, -kLargestWhole, kLargestWhole));
}

inline int64_t NsOfSeconds(double seconds) {
  return WholeNumber(seconds * static_cast<double>(kSecond));
}

inline int64_t NsOf(const google::protobuf::Timestamp& time) {
  constexpr int64_t kMostSeconds = 4'000'000'000;
  return std::clamp(time.seconds(), -kMostSeconds, kMostSeconds) * kSecond + time.nanos();
}

// Of nanoseconds since 1970.
inline google::protobuf::Timestamp ToTimestamp(int64_t ns) {
  google::protobuf::Timestamp time;
  time.set_seconds(ns / kSecond);
  time.set_nanos(static_cast<int32_t>(ns % kSecond));
  return time;
}

}  // namespace rollcall
