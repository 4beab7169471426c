// SPDX-License-Identifier: Apache-2.0
// Identifies a process on any host.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>

namespace rollcall {

struct ProcessKey {
  std::string host;
  int32_t pid = 0;
  uint64_t start_time = 0;  // clock ticks since boot: a later process may reuse the pid
  bool operator<(const ProcessKey& other) const {
    return std::tie(host, pid, start_time) < std::tie(other.host, other.pid, other.start_time);
  }
  bool operator==(const ProcessKey& other) const {
    return pid == other.pid && start_time == other.start_time && host == other.host;
  }
  template <typename H>
  friend H AbslHashValue(H state, const ProcessKey& key) {
    return H::combine(std::move(state), key.host, key.pid, key.start_time);
  }
};

}  // namespace rollcall
