// SPDX-License-Identifier: Apache-2.0
// What a wait of a transfer waits for: other waits; or none of them, and then the culprit.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/diagnosis/network/network_points.h"
#include "daemon/model/network_state.h"

namespace rollcall {

// A rank or link that waits for no other.
struct NetworkEnd {
  NetworkFault fault = NetworkFault::kNone;
  int32_t culprit = -1, peer = -1;
  // The other end has what the culprit's proxy thread has yet to send, as it believes.
  bool has_stopped = false;
};

struct NetworkNeed {
  NetworkEnd end;              // fault not kNone: what the wait would end at
  std::vector<size_t> points;  // the waits that it waits for; at most kMostNeeds
  // It waits for `points`, or is `end` itself: the states allow both.
  bool is_open = false;
};
inline constexpr size_t kMostNeeds = 32;

// The waits of one kernel, a rank's part of a channel, or of all kernels of a host. At most
// kMostNeeds of each kind, and as many states of any kind.
struct KernelWaits {
  std::vector<size_t> sends, receives;
  // Of them those that wait: sends for data and for the network or the receiver, receives for data
  // and for the GPU.
  std::vector<size_t> empty, full, lacking, untaken;
  // Those that show an earlier operation: nothing is posted for the one in which their peers are.
  std::vector<size_t> unposted_sends, unposted_receives;
};

// Refers to the points.
class NetworkNeeds {
 public:
  explicit NetworkNeeds(const NetworkPoints& points) : points_(points) {}

  // Neither an end nor points: it does not wait, or the states do not show what for. Constant time
  // on average if called in the order of the points.
  NetworkNeed Of(size_t point);

 private:
  const NetworkPoints& points_;
  PointRange own_range_, node_range_;
  KernelWaits own_, node_;
};

}  // namespace rollcall
