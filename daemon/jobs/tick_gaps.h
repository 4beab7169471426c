// SPDX-License-Identifier: Apache-2.0
// How much later than asked the agents' ticks come. On a machine that cannot bear the load, ticks
// wait in the kernel and in gRPC, where the daemon cannot see them: then the ticks of most agents
// come late, and an agent without ticks is not silent for that long.
//
// Pure: the caller reads the clock. One owner, no lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace rollcall {

class TickGaps {
 public:
  // A tick came at `now_ns`, `late_ns` later than the agent's pace asks. Times never go back.
  void Add(int64_t now_ns, int64_t late_ns);

  // So late, or less, were this share of the ticks of the last seconds: an upper bound, from a
  // coarse scale up to kMostNs. 0 if they were in time, or too few ticks came.
  int64_t Usual(int64_t now_ns, double share) const;

  static constexpr int64_t kMostNs = 32'000'000'000;

 private:
  // Bucket 0 counts what is up to half a second late. Each further one ends at twice the time, the
  // last at kMostNs.
  static constexpr size_t kBuckets = 7;
  struct Second {
    int64_t second = 0;
    std::array<uint32_t, kBuckets> counts = {};
  };

  std::deque<Second> seconds_;  // only those in which ticks came
};

}  // namespace rollcall
