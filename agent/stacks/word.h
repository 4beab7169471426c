// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace rollcall {

inline constexpr uint64_t kWordBytes = sizeof(uint64_t);  // of a stack of a 64-bit processor

}  // namespace rollcall
