// SPDX-License-Identifier: Apache-2.0
// Neighbouring ranks. A job may claim a quarter of a million ranks of which one has reported:
// ranges hold the others in little memory.
#pragma once

#include <cstdint>

namespace rollcall {

struct RankRange {
  int32_t first = 0, last = 0;  // both belong to the range
};

}  // namespace rollcall
