// SPDX-License-Identifier: Apache-2.0
#include "agent/segments/segment_network.h"

#include <tuple>
#include <utility>

#include "interpose/segment_network.h"

namespace rollcall {
namespace {

using segment::NetworkTransfer;

constexpr uint64_t kMostNetworkSteps = uint64_t{1} << 53;  // what JSON can express

// NCCL has several connections with the same channel, peer and direction.
struct Connection {
  NetworkStateSnapshot state;
  uint64_t began = 0;  // ticks
};
using Key = std::tuple<int32_t, bool, int32_t>;  // channel, sends, peer
struct Found {
  std::map<Key, Connection> connections;
  bool is_whole = true;
};

bool IsUnderWay(const NetworkStateSnapshot& state) { return state.begun > state.ended; }

bool IsConsistent(const NetworkEntryCopy& entry, const NetworkTransfer& transfer,
                  const NetworkComm& comm) {
  return entry.generation == comm.generation && entry.began != 0 && transfer.peer >= 0 &&
         transfer.peer < comm.size && NetworkKey(transfer) == entry.key &&
         entry.ended <= entry.begun && entry.begun <= kMostNetworkSteps &&
         entry.begun - entry.ended <= segment::kNetworkSteps;
}

Connection ToConnection(const NetworkEntryCopy& entry, const NetworkTransfer& transfer,
                        const TickClock& clock) {
  Connection out;
  out.began = entry.began;
  NetworkStateSnapshot& state = out.state;
  state.channel = static_cast<int32_t>(transfer.channel);
  state.peer = transfer.peer;
  state.sends = transfer.sends;
  state.begun = entry.begun;
  state.ended = entry.ended;
  state.since_ns = clock.ToNs(entry.changed);
  const uint8_t wait = segment::WaitOfStep(entry.waits, entry.ended);
  if (IsUnderWay(state) && wait < kNetworkWaits) state.wait = static_cast<NetworkWait>(wait);
  return out;
}

// Of two connections with the same channel, peer and direction, the one that shows why the rank
// waits: the older one if both are under way, else the one that is, else the newer one.
bool TellsMore(const Connection& a, const Connection& b) {
  const bool is_under_way = IsUnderWay(a.state);
  if (is_under_way != IsUnderWay(b.state)) return is_under_way;
  return is_under_way ? a.began < b.began : a.began > b.began;
}

void Add(const Connection& connection, Found* found) {
  const NetworkStateSnapshot& state = connection.state;
  const Key key{state.channel, state.sends, state.peer};
  const auto known = found->connections.find(key);
  if (known != found->connections.end()) {
    if (TellsMore(connection, known->second)) known->second = connection;
  } else if (found->connections.size() < kMostNetworkStates) {
    found->connections.emplace(key, connection);
  } else {
    found->is_whole = false;
  }
}

}  // namespace

std::vector<NetworkSnapshot> ToNetworkSnapshots(const std::vector<NetworkEntryCopy>& entries,
                                                const std::map<uint32_t, NetworkComm>& comms,
                                                const TickClock& clock) {
  std::map<uint32_t, Found> all;
  for (const NetworkEntryCopy& entry : entries) {
    const NetworkTransfer transfer = segment::NetworkTransferOf(entry.key);
    const auto comm = comms.find(transfer.comm);
    if (comm == comms.end() || !IsConsistent(entry, transfer, comm->second)) continue;
    Add(ToConnection(entry, transfer, clock), &all[transfer.comm]);
  }
  std::vector<NetworkSnapshot> out;
  for (const auto& [index, found] : all) {
    if (out.size() == kMostNetworkComms) break;
    const NetworkComm& comm = comms.at(index);
    out.push_back({index, comm.id, comm.rank, found.is_whole, {}});
    for (const auto& [key, connection] : found.connections) {
      out.back().states.push_back(connection.state);
    }
  }
  return out;
}

}  // namespace rollcall
