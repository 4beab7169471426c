// SPDX-License-Identifier: Apache-2.0
// How late the daemon itself was in the last seconds. On a machine without room for it, ticks wait
// in the kernel and no agent is silent: the daemon takes this time off an agent's silence.
//
// Pure: the caller reads the clock. One owner, no lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>

namespace rollcall {

class OwnLateness {
 public:
  // `window_ns`: lateness before that is forgotten.
  explicit OwnLateness(int64_t window_ns) : window_ns_(window_ns) {}

  // A thread that wanted to wake up at `due_ns` woke up at `now_ns`.
  void Add(int64_t due_ns, int64_t now_ns) {
    const int64_t late_ns = now_ns - due_ns;
    if (late_ns > kUsualNs) late_.emplace_back(now_ns, late_ns);
    while (!late_.empty() && late_.front().first < now_ns - window_ns_) late_.pop_front();
  }

  // Returns the sum over the window.
  int64_t Total() const {
    int64_t total = 0;
    for (const auto& [at_ns, late_ns] : late_) total += late_ns;
    return total;
  }

 private:
  static constexpr int64_t kUsualNs = 20'000'000;

  const int64_t window_ns_;
  std::deque<std::pair<int64_t, int64_t>> late_;  // when, by how much
};

}  // namespace rollcall
