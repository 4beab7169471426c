// SPDX-License-Identifier: Apache-2.0
// Times in messages. Their sender may be damaged, hostile or of another release, so a time that
// int64_t cannot hold becomes the nearest one that leaves room for a sum. Include this from .cc
// files only, as base/durations.h.
#pragma once

#include <google/protobuf/timestamp.pb.h>

#include <algorithm>
#include <cstdint>

#include "base/durations.h"

namespace rollcall {

inline int64_t NsOf(const google::protobuf::Timestamp& time) {
  constexpr int64_t kMostSeconds = 4'000'000'000;
  return std::clamp(time.seconds(), -kMostSeconds, kMostSeconds) * kSecond + time.nanos();
}

// Converts nanoseconds since 1970.
inline google::protobuf::Timestamp ToTimestamp(int64_t ns) {
  google::protobuf::Timestamp time;
  time.set_seconds(ns / kSecond);
  time.set_nanos(static_cast<int32_t>(ns % kSecond));
  return time;
}

}  // namespace rollcall
