// SPDX-License-Identifier: Apache-2.0
// The number of a key of a store that is too long for its field. The library keeps the end of such
// a key, and the number in front of it: "#1a2b3c4d". Of two keys that end alike, the numbers
// differ. Libraries of the last release keep the end alone.
#pragma once

#include <stddef.h>

namespace rollcall {

inline constexpr char kKeyNumberMark = '#';
inline constexpr size_t kKeyNumberDigits = 8;  // hexadecimal, in lower case

}  // namespace rollcall
