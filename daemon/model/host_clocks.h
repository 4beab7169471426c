// SPDX-License-Identifier: Apache-2.0
// Converts the times of many hosts to one clock.
//
// A message carries the time at which its host sent it, by the host's clock, and the
// reader has the time of its arrival. The smallest difference over many messages is
// the difference of the clocks plus the fastest transfer, so the error is about the
// latency of the network. Old differences expire, so the result follows a clock that
// drifts. It follows a clock that stopped (on a suspended host) at once, so that no
// time on that host seems long ago. A late message has the same effect: until the
// next one arrives, its times seem more recent than they are, and never older.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace rollcall {

class HostClocks {
 public:
  // Records that a message of `made_ns`, by the host's clock, arrived at `came_ns`.
  // Returns the nanoseconds to add to the host's times.
  int64_t Update(const std::string& host, int64_t made_ns, int64_t came_ns);
  // What Update() returned first for this host; after a jump, since then. 0 if it was never called.
  int64_t FirstOffset(const std::string& host) const;
  void Forget(const std::string& host) { clocks_.erase(host); }

 private:
  static constexpr int kWindow = 128;                // messages; a clock keeps two windows
  static constexpr int64_t kJumpNs = 1'000'000'000;  // from one message to the next

  struct Clock {
    int64_t smallest_ns = 0, smallest_before_ns = 0;
    int64_t newest_ns = 0;  // difference
    int64_t first_ns = 0;
    int seen = 0;
    bool has_before = false;
  };
  std::map<std::string, Clock> clocks_;
};

}  // namespace rollcall
