// SPDX-License-Identifier: Apache-2.0
// The host of a rank whose transfers over the network were sampled.
#pragma once

#include <cstdint>

namespace rollcall {

struct NetworkHost {
  int32_t number = -1;   // that ranks of one host share; -1 if unknown
  bool is_whole = true;  // false: the sample of another rank of it is missing
};

}  // namespace rollcall
