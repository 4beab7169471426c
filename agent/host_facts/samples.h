// SPDX-License-Identifier: Apache-2.0
// Counters that a probe reads twice: what they grew by.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace rollcall {

// Counters of a subject ("mlx5_2 port 1") by their name ("symbol_error").
using Samples = std::map<std::pair<std::string, std::string>, int64_t>;

// The growth of all counters of a subject together, and what grew: "symbol_error +3".
struct Growth {
  int64_t total = 0;
  std::string text;
};

// Returns the growth by subject, of subjects whose counters grew. A counter that fell was set back:
// it does not count.
std::map<std::string, Growth> GrowthBetween(const Samples& before, const Samples& after);

}  // namespace rollcall
