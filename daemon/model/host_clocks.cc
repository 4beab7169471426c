// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/host_clocks.h"

#include <algorithm>

namespace rollcall {

int64_t HostClocks::Update(const std::string& host, int64_t made_ns, int64_t came_ns) {
  Clock& clock = clocks_[host];
  const int64_t difference = came_ns - made_ns;
  const bool is_known = clock.seen != 0 || clock.has_before;
  if (is_known && difference - clock.newest_ns > kJumpNs) clock = Clock();
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

}  // namespace rollcall
