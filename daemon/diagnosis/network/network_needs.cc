// SPDX-License-Identifier: Apache-2.0
// Seen with NCCL 2.28 over sockets: a rank whose kernel waits for a receive shows sends that wait
// for its GPU, too. From the source of NCCL's net transport: each step of a send waits for the GPU,
// then for a buffer of the receiver, then for the network; a connection has eight steps under way
// at most.
#include "daemon/diagnosis/network/network_needs.h"

#include <algorithm>

namespace rollcall {
namespace {

NetworkNeed EndAt(NetworkFault fault, int32_t culprit, int32_t peer) {
  NetworkNeed need;
  need.end = {fault, culprit, peer, false};
  return need;
}

// The culprit's proxy thread no longer looks at what it has posted.
NetworkNeed StoppedProxy(int32_t culprit, int32_t peer) {
  NetworkNeed need = EndAt(NetworkFault::kProxy, culprit, peer);
  need.end.has_stopped = true;
  return need;
}

NetworkNeed Follow(std::vector<size_t> points) {
  NetworkNeed need;
  need.points = std::move(points);
  return need;
}

bool IsUntaken(NetworkWait wait) {
  return wait == NetworkWait::kReceiveGpu || wait == NetworkWait::kReceiveFlush;
}
bool IsFull(NetworkWait wait) {
  return wait == NetworkWait::kSend || wait == NetworkWait::kSendPeer;
}

void AddTo(std::vector<size_t>* kind, size_t point) {
  if (kind->size() < kMostNeeds) kind->push_back(point);
}

bool IsOver(const NetworkState& state) { return state.begun == state.ended; }

bool HasUnderWay(const NetworkPoints& points, PointRange range, bool sends) {
  const size_t end = std::min(range.end, range.first + kMostNeeds);
  for (size_t i = range.first; i < end; ++i) {
    const NetworkPoint& point = points.points()[i];
    if (point.sends == sends && !IsOver(*point.state)) return true;
  }
  return false;
}

// What a rank shows on a channel, and what its peers have under way with it.
struct OverStates {
  bool all = true, any_send = false, any_receive = false;
  bool is_sent_to = false, is_received_from = false;
};

OverStates OverStatesOf(const NetworkPoints& points, PointRange own) {
  OverStates over;
  over.all = own.end - own.first <= kMostNeeds;
  for (size_t i = own.first; i < own.end && over.all; ++i) {
    const NetworkPoint& point = points.points()[i];
    over.all = IsOver(*point.state);
    (point.sends ? over.any_send : over.any_receive) = true;
    const int other = points.Find(point.channel, point.peer, point.rank, !point.sends);
    if (other < 0 || IsOver(*points.points()[static_cast<size_t>(other)].state)) continue;
    (point.sends ? over.is_received_from : over.is_sent_to) = true;
  }
  return over;
}

// All that the rank shows is over, while one rank sends to it and one receives from it: what they
// have under way is a later operation, for which it has posted nothing. Had it done its part of the
// same operation, what it has received would have been sent. Where it only receives or only sends,
// others of its host do the rest.
bool HasPostedNothing(const NetworkPoints& points, int32_t channel, int32_t rank) {
  const OverStates over = OverStatesOf(points, points.OfRank(channel, rank));
  if (!over.all) return false;
  if (over.is_sent_to == over.is_received_from) return over.is_sent_to;
  if (over.is_sent_to ? over.any_send : over.any_receive) return false;
  return HasUnderWay(points, points.OfNode(channel, rank), over.is_sent_to);
}

KernelWaits WaitsIn(const NetworkPoints& points, PointRange range) {
  KernelWaits waits;
  for (size_t i = range.first; i < range.end; ++i) {
    const NetworkPoint& point = points.points()[i];
    const NetworkWait wait = point.state->wait;
    AddTo(point.sends ? &waits.sends : &waits.receives, i);
    if (point.sends && wait == NetworkWait::kSendGpu) AddTo(&waits.empty, i);
    if (point.sends && IsFull(wait)) AddTo(&waits.full, i);
    if (!point.sends && wait == NetworkWait::kReceive) AddTo(&waits.lacking, i);
    if (!point.sends && IsUntaken(wait)) AddTo(&waits.untaken, i);
    if (!IsOver(*point.state) || !HasPostedNothing(points, point.channel, point.rank)) continue;
    AddTo(point.sends ? &waits.unposted_sends : &waits.unposted_receives, i);
  }
  return waits;
}

// The proxy thread of the rank has not posted this transfer.
NetworkNeed UnpostedAt(const NetworkPoints& points, size_t transfer) {
  const NetworkPoint& point = points.points()[transfer];
  return EndAt(NetworkFault::kProxy, point.rank, point.peer);
}

// What a wait may wait for within its rank. What passes between ranks of one host is not a transfer
// over the network: a rank without such states gets those of its host.
class Kernel {
 public:
  using Kind = std::vector<size_t> KernelWaits::*;

  Kernel(const NetworkPoints& points, const KernelWaits& own, const KernelWaits& node)
      : points_(points), own_(own), node_(node) {}

  // Returns the transfers with ranks other than `but`.
  std::vector<size_t> Sends(Kind kind, int32_t but) const {
    return Except(Except(own_.sends, but).empty() ? node_.*kind : own_.*kind, but);
  }
  std::vector<size_t> Receives(Kind kind, int32_t but) const {
    return Except(Except(own_.receives, but).empty() ? node_.*kind : own_.*kind, but);
  }

  // Whether it receives over the network itself, from others than `but`.
  bool HasReceives(int32_t but) const { return !Except(own_.receives, but).empty(); }
  bool HasSends() const { return !own_.sends.empty(); }

 private:
  std::vector<size_t> Except(const std::vector<size_t>& those, int32_t but) const {
    std::vector<size_t> found;
    for (const size_t i : those) {
      if (points_.points()[i].peer != but) found.push_back(i);
    }
    return found;
  }

  const NetworkPoints& points_;
  const KernelWaits& own_;
  const KernelWaits& node_;
};

// The other end of a transfer.
struct OtherEnd {
  int point = -1;
  const NetworkState* state = nullptr;  // nullptr if there is no transfer
  bool is_known = false;  // false: the sample that should show it is missing or not whole
};

OtherEnd FindOther(const NetworkPoints& points, const NetworkPoint& of) {
  OtherEnd other;
  other.point = points.Find(of.channel, of.peer, of.rank, !of.sends);
  if (other.point >= 0) other.state = points.points()[static_cast<size_t>(other.point)].state;
  if (other.state != nullptr && IsOver(*other.state) &&
      HasPostedNothing(points, of.channel, of.peer)) {
    return {other.point, nullptr, true};
  }
  // An operation that has ended may be an earlier one: its steps do not compare.
  if (other.state != nullptr && IsOver(*other.state) && other.state->ended != of.state->ended) {
    return {};
  }
  other.is_known = other.state != nullptr || points.IsWhole(of.peer);
  return other;
}

NetworkNeed NeedOfReceive(const NetworkPoints& points, const NetworkPoint& r) {
  const OtherEnd sender = FindOther(points, r);
  if (!sender.is_known) return {};
  if (sender.state == nullptr) return EndAt(NetworkFault::kProxy, r.peer, r.rank);
  const NetworkState& s = *sender.state;
  if (s.ended > r.state->ended) return EndAt(NetworkFault::kLink, r.peer, r.rank);
  if (s.ended < r.state->ended) return StoppedProxy(r.peer, r.rank);
  if (s.wait == NetworkWait::kNone) return EndAt(NetworkFault::kProxy, r.peer, r.rank);
  if (s.wait == NetworkWait::kSendGpu) return Follow({static_cast<size_t>(sender.point)});
  return EndAt(NetworkFault::kLink, r.peer, r.rank);
}

// Data is there, and the GPU does not take it: its kernel waits for something else, or stands.
NetworkNeed NeedOfTaking(const NetworkPoints& points, const Kernel& kernel, const NetworkPoint& r) {
  std::vector<size_t> needs = kernel.Sends(&KernelWaits::full, -1);
  if (needs.empty()) needs = kernel.Receives(&KernelWaits::lacking, r.peer);
  if (!needs.empty()) return Follow(std::move(needs));
  const std::vector<size_t> unposted = kernel.Sends(&KernelWaits::unposted_sends, -1);
  if (!unposted.empty()) return UnpostedAt(points, unposted.front());
  const std::vector<size_t> sends = kernel.Sends(&KernelWaits::empty, -1);
  if (!kernel.HasSends() && !points.IsHostWhole(r.rank)) return {};
  if (sends.empty()) return EndAt(NetworkFault::kPeerGpu, r.rank, r.peer);
  const NetworkPoint& send = points.points()[sends.front()];
  return EndAt(NetworkFault::kOwnGpu, send.rank, send.peer);
}

// An innocent rank shows this, too, while its kernel waits for a receive or for room to send to
// another peer.
NetworkNeed NeedOfOutput(const NetworkPoints& points, const Kernel& kernel, const NetworkPoint& s) {
  const OtherEnd receiver = FindOther(points, s);
  if (receiver.state != nullptr && receiver.state->ended > s.state->ended) {
    return StoppedProxy(s.rank, s.peer);
  }
  std::vector<size_t> needs = kernel.Receives(&KernelWaits::lacking, s.peer);
  if (needs.empty()) needs = kernel.Sends(&KernelWaits::full, s.peer);
  if (!needs.empty()) return Follow(std::move(needs));
  const std::vector<size_t> unposted = kernel.Receives(&KernelWaits::unposted_receives, s.peer);
  if (!unposted.empty()) return UnpostedAt(points, unposted.front());
  if (!kernel.HasReceives(s.peer) && !points.IsHostWhole(s.rank)) return {};
  NetworkNeed need = EndAt(NetworkFault::kOwnGpu, s.rank, s.peer);
  // The root of a tree sends to a child what it has received from it; a leaf does not. A rank with
  // data from another child is not a root: NCCL's roots have one child.
  const int back = points.Find(s.channel, s.rank, s.peer, false);
  if (back < 0) return need;
  const size_t at = static_cast<size_t>(back);
  if (points.points()[at].state->wait != NetworkWait::kReceive) return need;
  if (!kernel.Receives(&KernelWaits::untaken, s.peer).empty()) return need;
  if (!receiver.is_known) return {};
  need.points = {at};
  need.is_open = true;
  return need;
}

// It lacks a buffer of the receiver, or the network has the data. Over sockets a receiver that does
// not take what has come looks like the network.
NetworkNeed NeedOfSend(const NetworkPoints& points, const NetworkPoint& s) {
  const OtherEnd receiver = FindOther(points, s);
  if (!receiver.is_known) return {};
  if (receiver.state == nullptr) return EndAt(NetworkFault::kProxy, s.peer, s.rank);
  const NetworkState& r = *receiver.state;
  if (r.ended > s.state->ended) return StoppedProxy(s.rank, s.peer);
  if (IsUntaken(r.wait)) return Follow({static_cast<size_t>(receiver.point)});
  const bool lacks_buffer = s.state->wait == NetworkWait::kSendPeer;
  if (lacks_buffer && r.wait == NetworkWait::kNone) {
    return EndAt(NetworkFault::kProxy, s.peer, s.rank);
  }
  return EndAt(NetworkFault::kLink, s.rank, s.peer);
}

bool IsSame(PointRange a, PointRange b) { return a.first == b.first && a.end == b.end; }

}  // namespace

NetworkNeed NetworkNeeds::Of(size_t point) {
  const NetworkPoint& of = points_.points()[point];
  const PointRange own = points_.OfRank(of.channel, of.rank);
  const PointRange node = points_.OfNode(of.channel, of.rank);
  if (!IsSame(own, own_range_)) own_ = WaitsIn(points_, own);
  if (!IsSame(node, node_range_)) node_ = WaitsIn(points_, node);
  own_range_ = own;
  node_range_ = node;
  const Kernel kernel(points_, own_, node_);
  const NetworkWait wait = of.state->wait;
  if (of.sends) {
    if (wait == NetworkWait::kSendGpu) return NeedOfOutput(points_, kernel, of);
    const bool is_posted = wait == NetworkWait::kSendPeer || wait == NetworkWait::kSend;
    return is_posted ? NeedOfSend(points_, of) : NetworkNeed();
  }
  if (wait == NetworkWait::kReceive) return NeedOfReceive(points_, of);
  return IsUntaken(wait) ? NeedOfTaking(points_, kernel, of) : NetworkNeed();
}

}  // namespace rollcall
