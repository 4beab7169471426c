// SPDX-License-Identifier: Apache-2.0
// Brings the times of many hosts onto one clock.
//
// A message says when it was made, by its host's clock, and the reader knows
// when it came. The smallest difference over many messages is the difference of
// the clocks and the quickest transfer, so errors are of the order of the
// network's latency. Clocks that drift are followed, since old differences are
// forgotten; one that stood still (a host that was suspended) at once, so that no
// time on it seems long ago. A message that was only late looks the same: until
// the next one comes, its times seem younger than they are, and never older.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace rollcall {

class HostClocks {
 public:
  // Notes that a message made at `made_ns` by the host's clock came at
  // `came_ns`. Returns what to add to the host's times.
  int64_t Update(const std::string& host, int64_t made_ns, int64_t came_ns);

 private:
  static constexpr int kWindow = 128;  // messages; two windows are remembered
  static constexpr int64_t kJumpNs = 1'000'000'000;  // from one message to the next

  struct Clock {
    int64_t smallest_ns = 0, smallest_before_ns = 0;
    int64_t newest_ns = 0;  // difference
    int seen = 0;
    bool has_before = false;
  };
  std::map<std::string, Clock> clocks_;
};

}  // namespace rollcall
