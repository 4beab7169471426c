// SPDX-License-Identifier: Apache-2.0
// Lets so many hosts connect at the same time, in the order in which they ask. One owner, no clock.
//
// The hosts of a real fleet have a processor each for their handshakes. Here one process makes the
// handshakes of all: without a limit, thousands are under way at once, and each takes longer than a
// daemon or gRPC waits for it.
#pragma once

#include <deque>

namespace rollcall::fleet {

class Host;

class Ramp {
 public:
  // `most` 0 means any number.
  explicit Ramp(int most) : most_(most) {}

  // Whether the host may connect now. If not, Leave() returns it later.
  bool Enter(Host* host) {
    if (most_ == 0 || connecting_ < most_) {
      ++connecting_;
      return true;
    }
    waiting_.push_back(host);
    return false;
  }

  // A host has connected, or failed to. Returns the host that may connect now, or nullptr.
  Host* Leave() {
    if (waiting_.empty()) {
      --connecting_;
      return nullptr;
    }
    Host* next = waiting_.front();
    waiting_.pop_front();
    return next;
  }

 private:
  const int most_;
  int connecting_ = 0;
  std::deque<Host*> waiting_;
};

}  // namespace rollcall::fleet
