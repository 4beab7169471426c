// SPDX-License-Identifier: Apache-2.0
// How long to wait before the next attempt: after each failure twice as long, up to a limit.
//
// Pure: the caller counts the failures in a row and gives the chance.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rollcall {

struct Backoff {
  int64_t first_ns = 0;
  int64_t longest_ns = 0;
  // A pause is multiplied by a number between these, so that many who failed at one time do not all
  // try again at one time. It may exceed `longest_ns` by that.
  double least_share = 1;
  double most_share = 1;

  // The pause after so many failures in a row, at least 1. `chance`: from 0 to 1.
  int64_t PauseNs(int failures, double chance = 0) const {
    int64_t pause_ns = first_ns;
    for (int i = 1; i < failures && pause_ns < longest_ns; ++i) {
      pause_ns = std::min(2 * pause_ns, longest_ns);
    }
    const double share = least_share + chance * (most_share - least_share);
    return static_cast<int64_t>(static_cast<double>(pause_ns) * share);
  }
};

}  // namespace rollcall
