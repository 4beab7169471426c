// SPDX-License-Identifier: Apache-2.0
// Which host is to be woken when. One owner, no clock.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

namespace rollcall::fleet {

class Host;

class Timers {
 public:
  void Add(int64_t at_ns, Host* host) { queue_.push({at_ns, host}); }

  // INT64_MAX if there is none.
  int64_t next_ns() const { return queue_.empty() ? INT64_MAX : queue_.top().first; }

  // The one that is due first. There is one.
  std::pair<int64_t, Host*> Take() {
    const std::pair<int64_t, Host*> first = queue_.top();
    queue_.pop();
    return first;
  }

 private:
  using Entry = std::pair<int64_t, Host*>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> queue_;
};

}  // namespace rollcall::fleet
