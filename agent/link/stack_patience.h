// SPDX-License-Identifier: Apache-2.0
// How long the agent waits for the stacks of one process. On a busy host they take their time. But
// what it waits for may never come, and everybody else waits meanwhile: a user who has let it wait
// in vain gets little time for a while.
//
// Pure: the caller gives the time. One owner, no lock.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>

#include "agent/processes/payer.h"

namespace rollcall {

class StackPatience {
 public:
  static constexpr int64_t kLongNs = 60'000'000'000;  // symbols included
  static constexpr int64_t kShortNs = 5'000'000'000;
  static constexpr int64_t kShortForNs = 600'000'000'000;

  int64_t TimeoutNs(const Payer& payer, int64_t now_ns) {
    for (auto at = short_until_ns_.begin(); at != short_until_ns_.end();) {
      at = at->second <= now_ns ? short_until_ns_.erase(at) : std::next(at);
    }
    return short_until_ns_.count(payer) == 0 ? kLongNs : kShortNs;
  }
  // The agent has waited that long for nothing.
  void CountTimeout(const Payer& payer, int64_t now_ns) {
    short_until_ns_[payer] = now_ns + kShortForNs;
  }

 private:
  std::map<Payer, int64_t> short_until_ns_;
};

}  // namespace rollcall
