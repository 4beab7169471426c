// SPDX-License-Identifier: Apache-2.0
// How often agents shall send ticks, so that all of them together cost the daemon a bounded share
// of its machine.
//
// The pace follows from the measured cost of a tick and the number of agents. It moves in steps and
// not at once, so that noise does not change it. Pure: the caller measures. One owner, no lock.
#pragma once

#include <cstdint>

namespace rollcall {

class TickPace {
 public:
  static constexpr int64_t kShortestNs = 100'000'000;
  // The longest that the cost asks for: beyond it, longer intervals save little, because records
  // cost the same in fewer ticks.
  static constexpr int64_t kLongestUsualNs = 1'800'000'000;
  // While ticks wait for the daemon, which then has no room at all.
  static constexpr int64_t kLongestNs = 5'000'000'000;

  // `cores`: the share of the machine that ticks may cost.
  explicit TickPace(double cores) : cores_(cores) {}

  struct Load {
    int agents = 0;
    uint64_t ticks = 0;      // applied since the last call
    double cpu_seconds = 0;  // that the daemon used since the last call
    int64_t lag_ns = 0;      // how long ticks wait for the daemon
  };

  // Called about once a second. Returns the interval between two ticks of an agent.
  int64_t Update(const Load& load);
  int64_t tick_ns() const { return tick_ns_; }

 private:
  const double cores_;
  double seconds_per_tick_ = 0;  // smoothed; 0 if no tick was measured yet
  int64_t tick_ns_ = kShortestNs;
  int calm_ = 0;  // calls in a row for which a shorter interval would do
};

}  // namespace rollcall
