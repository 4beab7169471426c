// SPDX-License-Identifier: Apache-2.0
// Which attempt of a job makes room for a newer one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace rollcall {

struct HeldAttempt {
  int32_t number = 0;
  std::string user;  // who began it; empty if unknown
  bool is_alive = false;
};

// The oldest one that is over. If all live, the oldest one of the user who has most: several users
// may use one name, and no user makes another's attempt go. `held`: oldest first, not empty.
inline int32_t MakesRoom(const std::vector<HeldAttempt>& held) {
  const auto over = std::find_if(held.begin(), held.end(),
                                 [](const HeldAttempt& attempt) { return !attempt.is_alive; });
  if (over != held.end()) return over->number;
  std::map<std::string, size_t> counts;
  for (const HeldAttempt& attempt : held) ++counts[attempt.user];
  return std::max_element(held.begin(), held.end(),
                          [&counts](const HeldAttempt& a, const HeldAttempt& b) {
                            return counts[a.user] < counts[b.user];
                          })
      ->number;
}

}  // namespace rollcall
