// SPDX-License-Identifier: Apache-2.0
// A simulation of one collective over the network, as NCCL's kernels and proxy threads do it: on
// each connection eight buffers, which the sending kernel fills, a proxy thread sends, the network
// carries, the other proxy thread receives and the other kernel takes. Knows nothing of the walk.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "daemon/model/network_state.h"

namespace rollcall::corpus {

inline constexpr uint64_t kBuffers = 8;  // NCCL_STEPS
inline constexpr int64_t kForever = INT64_MAX;

// One direction between two ranks on one channel. Counts of steps.
struct Connection {
  int src = 0, dst = 0, channel = 0;
  bool is_network = true;  // false: the ranks share a host, and no proxy thread is between them
  uint64_t total = 0;
  uint64_t produced = 0, send_posted = 0, transmitted = 0, sent = 0, arrived = 0;
  uint64_t receive_posted = 0, received = 0, taken = 0, receive_done = 0;
  // As its proxy threads saw them last.
  NetworkWait send_wait = NetworkWait::kNone, receive_wait = NetworkWait::kNone;
  int64_t send_since = 0, receive_since = 0;
  int64_t link_ns = 0;         // for one step
  int64_t dies_at = kForever;  // carries nothing from then on
};

// What a part of a kernel does in each of `count` steps.
struct KernelStep {
  bool takes = false, gives = false;
  uint64_t count = 0;
};

// Threads of a kernel that go through their steps in order: each takes from all `in`, and gives to
// all `out`.
struct KernelPart {
  int rank = 0;
  std::vector<size_t> in, out;  // connections
  std::vector<KernelStep> steps;
  size_t at = 0;
  uint64_t done = 0;
};

struct RankSpeed {
  int64_t kernel_ns = 20'000, proxy_ns = 5'000;
  int64_t kernel_stops_at = kForever, proxy_stops_at = kForever;
  int64_t starts_at = 0;       // its kernel and its proxy thread
  uint64_t earlier_steps = 0;  // of the operation before, of each connection
};

class Transfer {
 public:
  // Over sockets the sender's side ends a step when the host's buffer has it; else the receiver
  // must have posted a buffer, and the step ends when it has arrived.
  Transfer(std::vector<Connection> connections, std::vector<KernelPart> parts,
           std::vector<RankSpeed> ranks, bool is_socket, uint64_t socket_steps);

  void RunUntil(int64_t time_ns);
  // Nothing will happen any more, unless it has faults that end.
  bool IsAtRest() const { return events_.empty(); }
  bool IsDone() const;
  // What the rank would read now.
  std::vector<NetworkState> StatesOf(int rank) const;
  const std::vector<Connection>& connections() const { return connections_; }
  uint64_t steps() const { return events_run_; }

 private:
  enum class Kind : uint8_t { kPart, kSend, kLink, kReceive };
  using Actor = std::pair<Kind, size_t>;

  void Wake(Kind kind, size_t which);
  int64_t DelayOf(Kind kind, size_t which) const;
  bool IsStopped(Kind kind, size_t which) const;
  size_t NumberOf(Kind kind, size_t which) const;
  void Act(Kind kind, size_t which);
  bool RunPart(KernelPart* part);
  bool CanRun(const KernelPart& part, const KernelStep& step) const;
  bool RunSend(Connection* c);
  bool RunLink(Connection* c);
  bool RunReceive(Connection* c);
  bool HasRoom(const Connection& c) const;

  std::vector<Connection> connections_;
  std::vector<KernelPart> parts_;
  std::vector<RankSpeed> ranks_;
  std::vector<size_t> giver_, taker_;  // part, by connection
  bool is_socket_;
  uint64_t socket_steps_;
  int64_t now_ = 0;
  uint64_t events_run_ = 0;
  struct Event {
    int64_t at = 0;
    uint64_t number = 0;
    Kind kind = Kind::kPart;
    size_t which = 0;
    bool operator>(const Event& o) const {
      return std::make_pair(at, number) > std::make_pair(o.at, o.number);
    }
  };
  uint64_t next_number_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<bool> is_pending_;
};

}  // namespace rollcall::corpus
