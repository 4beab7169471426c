// SPDX-License-Identifier: Apache-2.0
// Lengths of time in nanoseconds, as all times here are. For source files: a header that includes it
// gives its names to everybody.
#pragma once

#include <cstdint>

namespace rollcall {

inline constexpr int64_t kSecond = 1'000'000'000;

}  // namespace rollcall
