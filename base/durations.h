// SPDX-License-Identifier: Apache-2.0
// Durations in nanoseconds, the unit of all times. Include this from .cc files only, so that no
// header passes these names on.
#pragma once

#include <cstdint>

namespace rollcall {

inline constexpr int64_t kSecond = 1'000'000'000;

}  // namespace rollcall
