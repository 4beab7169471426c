// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/host_clocks.h"

#include <algorithm>

namespace rollcall {

int64_t HostClocks::Update(const std::string& host, int64_t made_ns, int64_t came_ns) {
  Clock& clock = clocks_[host];
  const int64_t difference = came_ns - made_ns;
  const bool is_known = clock.seen != 0 || clock.has_before;
  if (is_known && difference - clock.newest_ns > kJumpNs) clock = Clock();
  if (clock.seen == 0 && !clock.has_before) clock.first_ns = difference;
  clock.newest_ns = difference;
  clock.smallest_ns = clock.seen == 0 ? difference : std::min(clock.smallest_ns, difference);
  if (++clock.seen == kWindow) {
    clock.smallest_before_ns = clock.smallest_ns;
    clock.has_before = true;
    clock.seen = 0;
    return clock.smallest_before_ns;
  }
  return clock.has_before ? std::min(clock.smallest_ns, clock.smallest_before_ns)
                          : clock.smallest_ns;
}

int64_t HostClocks::FirstOffset(const std::string& host) const {
  const auto clock = clocks_.find(host);
  return clock == clocks_.end() ? 0 : clock->second.first_ns;
}

}  // namespace rollcall
