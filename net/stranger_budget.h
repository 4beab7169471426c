// SPDX-License-Identifier: Apache-2.0
// What all connections to the gRPC port whose callers the daemon does not know may send together.
// A limit of each connection bounds nothing where a stranger opens hundreds.
//
// Each connection has a little of its own, enough to log in whatever others do. Beyond it the
// connection takes from what all share. If that is used up, the connection that wants more has to
// go: a newcomer never pays for a flood. How many connections there are at a time is limited by
// PendingConnections.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/mutex.h"
#include "base/throttle.h"

namespace rollcall {

// The kinds of frames that are counted.
enum class FrameKind : uint8_t { kStreams, kResets, kPings, kSettings, kWindows, kIdle };
inline constexpr size_t kFrameKinds = 6;

// So many at once, and so many more each second.
struct FrameRate {
  int64_t at_once = 0, per_second = 0;
};

using FrameRates = std::array<FrameRate, kFrameKinds>;  // by FrameKind

class FrameThrottles {
 public:
  explicit FrameThrottles(const FrameRates& rates);
  // Returns false if one more would be too many.
  bool Take(FrameKind kind, int64_t now_ns) {
    return throttles_[static_cast<size_t>(kind)].Take(now_ns).has_value();
  }

 private:
  std::array<Throttle, kFrameKinds> throttles_;
};

// Thread-safe.
class StrangerBudget {
 public:
  StrangerBudget() : StrangerBudget(kTogether) {}
  explicit StrangerBudget(const FrameRates& together) : throttles_(together) {}

  // Returns false if strangers have used it up.
  bool Take(FrameKind kind, int64_t now_ns);
  // These calls take no memory any more: their connection is gone, or its caller is known. Until
  // then they count, however long a busy daemon needs for them.
  void GiveBackCalls(int64_t calls);

  // Of one connection. A client logs in with one call, and sends a few other frames meanwhile.
  static constexpr FrameRates kOwn = {{{1, 1}, {1, 1}, {20, 2}, {4, 1}, {100, 10}, {10, 1}}};
  // A call that has just begun takes 20 to 50 KiB.
  static constexpr int64_t kMostCalls = 100;
  static constexpr FrameRates kTogether = {
      {{kMostCalls, 500}, {kMostCalls, 500}, {2000, 1000}, {200, 100}, {5000, 2000}, {1000, 500}}};

 private:
  Mutex mutex_;
  FrameThrottles throttles_ ABSL_GUARDED_BY(mutex_);
  int64_t calls_ ABSL_GUARDED_BY(mutex_) = 0;  // not given back
};

}  // namespace rollcall
