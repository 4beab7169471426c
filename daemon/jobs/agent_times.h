// SPDX-License-Identifier: Apache-2.0
// How the daemon reads the times that an agent claims for one process: on the daemon's clock, and
// limited to what can be.
//
// Nothing that a process did or waits for is older than the process. Where its start is not known,
// or is older than a process can be, the start of its host is the limit, and a year in any case: a
// wait must not be "498,835 h" old because its agent reports it, or because a damaged segment does.
// Nothing that a tick reports has happened after the tick was made.
//
// All limits are on the agent's own clock, so no difference of clocks harms an honest agent. Pure.
#pragma once

#include <cstdint>

#include "daemon/jobs/agent_book.h"
#include "daemon/model/client_limits.h"

namespace rollcall {

namespace v1 {
class Identity;
}

class AgentTimes {
 public:
  // `since_ns`: from EarliestNs(), on the agent's clock; 0 if unknown. A tick that was read from
  // files has no limits: it may be of another host, and is as old as the file.
  AgentTimes(const AgentBook::Origin& origin, int64_t since_ns);

  // Returns the time on the daemon's clock; 0 (never) stays 0. One that cannot be becomes the
  // nearest one that can, and adds to `dropped` (may be nullptr).
  int64_t OnDaemonClock(int64_t time_ns, DroppedCounts* dropped) const;

  // What a time on the daemon's clock differs from one by the agent's first estimate: the estimate
  // gets better, and must not change the order of what one process did. Within two seconds.
  int32_t shift_ns() const { return shift_ns_; }

  // Since when a process with this identity may have done something, on the agent's clock; 0 if
  // unknown.
  static int64_t EarliestNs(const v1::Identity& identity);

 private:
  int64_t offset_ns_;
  int32_t shift_ns_;
  int64_t earliest_ns_ = INT64_MIN / 2, latest_ns_ = INT64_MAX / 2;  // on the agent's clock
};

}  // namespace rollcall
