// SPDX-License-Identifier: Apache-2.0
// Whole numbers from messages and flags. Their sender may be damaged, hostile or of another
// release, so a value that int64_t cannot hold becomes the nearest one that leaves room for a sum.
// NaN becomes 0. Include this from .cc files only, as durations.h.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/durations.h"

namespace rollcall {

inline int64_t WholeNumber(double value) {
  constexpr double kLargest = 4e18;
  if (value != value) return 0;
  return static_cast<int64_t>(std::clamp(value, -kLargest, kLargest));
}

inline int64_t NsOfSeconds(double seconds) {
  return WholeNumber(seconds * static_cast<double>(kSecond));
}

}  // namespace rollcall
