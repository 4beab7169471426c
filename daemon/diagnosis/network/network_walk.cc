// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/network/network_walk.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "daemon/diagnosis/network/network_needs.h"
#include "daemon/diagnosis/network/network_points.h"

namespace rollcall {
namespace {

constexpr int kNowhere = -1;
// Of a channel whose states leave several ends open: more of them show nothing.
constexpr size_t kMostOpenEnds = 4;

// What two ends have in common if they accuse the same part.
enum class Part : uint8_t { kGpu, kLink, kProxy };
using Accused = std::pair<int32_t, Part>;  // rank or, of a GPU, host; and its part

// Which GPU of a host does not produce data shows at another rank on each channel: the one from
// which the channel leaves the host.
Accused AccusedBy(const NetworkPoints& points, const NetworkEnd& end) {
  if (end.fault == NetworkFault::kLink) return {end.culprit, Part::kLink};
  if (end.fault == NetworkFault::kProxy) return {end.culprit, Part::kProxy};
  return {points.NodeOf(end.culprit), Part::kGpu};
}

// The votes for one end.
struct Votes {
  int sure = 0, open = 0;    // channels
  size_t waits = 0;          // that lead to it
  std::vector<size_t> ends;  // points that are this end, one of each such channel

  int Weight() const { return 2 * sure + open; }
};

// Finds for each wait the end to which it leads: from the ends back to those that wait for them.
class Paths {
 public:
  explicit Paths(const NetworkPoints& points) : points_(points.points()) {
    NetworkNeeds needs(points);
    for (size_t i = 0; i < points_.size(); ++i) needs_.push_back(needs.Of(i));
    FindStoppedProxies();
    next_.assign(points_.size(), kNowhere);
    ends_.assign(points_.size(), kNowhere);
    Lead();
  }

  // The point at which the wait ends; kNowhere: its end is not known.
  int EndOf(size_t point) const { return ends_[point]; }
  // The wait that it waits for, on the way there.
  int NextOf(size_t point) const { return next_[point]; }
  // The wait with the longest way to the end, of those for data if there are any.
  int FarthestFrom(size_t end) const {
    int farthest = kNowhere;
    for (const size_t point : order_) {
      if (ends_[point] != static_cast<int>(end)) continue;
      const bool is_for_data = !points_[point].sends;
      if (is_for_data || farthest == kNowhere || points_[static_cast<size_t>(farthest)].sends) {
        farthest = static_cast<int>(point);
      }
    }
    return farthest;
  }
  const NetworkEnd& At(size_t point) const { return needs_[point].end; }
  bool IsOpen(size_t point) const { return needs_[point].is_open && ends_[point] == kNowhere; }
  bool Waits(size_t point) const { return points_[point].state->wait != NetworkWait::kNone; }

 private:
  // A proxy thread that does not run explains all that its rank holds up.
  void FindStoppedProxies() {
    std::set<int32_t> stopped;
    for (const NetworkNeed& need : needs_) {
      if (need.end.has_stopped) stopped.insert(need.end.culprit);
    }
    if (stopped.empty()) return;
    for (NetworkNeed& need : needs_) {
      NetworkEnd& end = need.end;
      if (end.fault == NetworkFault::kNone) continue;
      if (end.fault == NetworkFault::kLink && stopped.count(end.culprit) == 0 &&
          stopped.count(end.peer) != 0) {
        std::swap(end.culprit, end.peer);
      }
      if (stopped.count(end.culprit) != 0) end.fault = NetworkFault::kProxy;
    }
  }

  bool IsEnd(size_t point) const {
    return needs_[point].end.fault != NetworkFault::kNone && !needs_[point].is_open;
  }

  void Lead() {
    std::vector<std::pair<size_t, size_t>> waiters;  // who waits for the first
    for (size_t i = 0; i < points_.size(); ++i) {
      for (const size_t need : needs_[i].points) waiters.push_back({need, i});
      if (!IsEnd(i)) continue;
      ends_[i] = static_cast<int>(i);
      order_.push_back(i);
    }
    std::sort(waiters.begin(), waiters.end());
    for (size_t at = 0; at < order_.size(); ++at) {
      const size_t to = order_[at];
      auto from = std::lower_bound(waiters.begin(), waiters.end(), std::make_pair(to, size_t{0}));
      for (; from != waiters.end() && from->first == to; ++from) {
        if (ends_[from->second] != kNowhere) continue;
        ends_[from->second] = ends_[to];
        next_[from->second] = static_cast<int>(to);
        order_.push_back(from->second);
      }
    }
  }

  const std::vector<NetworkPoint>& points_;
  std::vector<NetworkNeed> needs_;
  std::vector<int> next_, ends_;
  std::vector<size_t> order_;  // of the waits with an end, the nearest to their ends first
};

// The votes of all channels.
class Count {
 public:
  Count(const NetworkPoints& points, const Paths& paths)
      : all_(points), points_(points.points()), paths_(paths) {
    for (size_t first = 0; first < points_.size();) {
      size_t end = first;
      while (end < points_.size() && points_[end].channel == points_[first].channel) ++end;
      AddChannel(first, end);
      first = end;
    }
  }

  int channels() const { return channels_; }

  // nullptr if no end has the most votes. Ends that states leave open need more than the others;
  // two faults at once are two right answers.
  const Votes* Winner() const {
    const Votes* best = nullptr;
    bool is_tie = false;
    for (const auto& [accused, votes] : votes_) {
      const auto key = std::make_pair(votes.Weight(), votes.waits);
      if (best == nullptr || key > std::make_pair(best->Weight(), best->waits)) {
        is_tie = best != nullptr && best->Weight() == votes.Weight();
        best = &votes;
      } else {
        is_tie = is_tie || votes.Weight() == best->Weight();
      }
    }
    return best != nullptr && best->sure == 0 && is_tie ? nullptr : best;
  }

 private:
  struct Reached {
    size_t waits = 0;
    size_t end = 0;  // of a wait for data, if there is one
    bool has_data_wait = false;
  };

  void AddChannel(size_t first, size_t end) {
    std::map<Accused, Reached> reached, open;
    bool waits = false;
    for (size_t i = first; i < end; ++i) {
      waits = waits || paths_.Waits(i);
      const int at = paths_.EndOf(i);
      if (at != kNowhere) {
        Reached& to = reached[AccusedBy(all_, paths_.At(static_cast<size_t>(at)))];
        const bool is_for_data = points_[i].state->wait == NetworkWait::kReceive;
        if (to.waits++ == 0 || (is_for_data && !to.has_data_wait)) to.end = static_cast<size_t>(at);
        to.has_data_wait = to.has_data_wait || is_for_data;
      } else if (paths_.IsOpen(i)) {
        open[AccusedBy(all_, paths_.At(i))] = {1, i, false};
      }
    }
    channels_ += waits;
    if (reached.empty()) return AddOpen(open);
    const auto most = std::max_element(
        reached.begin(), reached.end(),
        [](const auto& a, const auto& b) { return a.second.waits < b.second.waits; });
    Votes& votes = votes_[most->first];
    ++votes.sure;
    votes.waits += most->second.waits;
    votes.ends.push_back(most->second.end);
  }

  void AddOpen(const std::map<Accused, Reached>& open) {
    if (open.size() > kMostOpenEnds) return;
    for (const auto& [accused, at] : open) {
      Votes& votes = votes_[accused];
      ++votes.open;
      votes.ends.push_back(at.end);
    }
  }

  const NetworkPoints& all_;
  const std::vector<NetworkPoint>& points_;
  const Paths& paths_;
  std::map<Accused, Votes> votes_;
  int channels_ = 0;
};

NetworkHop HopOf(const NetworkPoint& point) {
  return {point.rank, point.peer, point.channel, point.state->wait, point.state->since_ns};
}

// The way of the wait that is farthest from this end, over its channel. Of a rank the wait for data
// stands for all.
std::vector<NetworkHop> HopsTo(const NetworkPoints& points, const Paths& paths, size_t end) {
  const NetworkEnd& to = paths.At(end);
  const NetworkPoint& last = points.points()[end];
  std::vector<NetworkHop> hops;
  for (int at = paths.FarthestFrom(end); at != kNowhere;
       at = paths.NextOf(static_cast<size_t>(at))) {
    const NetworkPoint& point = points.points()[static_cast<size_t>(at)];
    if (!point.sends && point.rank != to.culprit) hops.push_back(HopOf(point));
  }
  const int own = points.Find(last.channel, to.culprit, to.peer,
                              last.rank == to.culprit ? last.sends : !last.sends);
  hops.push_back(own == kNowhere ? NetworkHop{to.culprit, to.peer, last.channel}
                                 : HopOf(points.points()[static_cast<size_t>(own)]));
  return hops;
}

// The end that stands for all: what the culprit does not send shows more than what it does not
// take.
size_t TellingEnd(const Votes& votes, const Paths& paths) {
  for (const size_t end : votes.ends) {
    if (paths.At(end).fault != NetworkFault::kPeerGpu) return end;
  }
  return votes.ends.front();
}

}  // namespace

NetworkWalk WalkNetwork(const std::vector<NetworkSample>& samples, int32_t size) {
  return WalkNetwork(samples, size, {});
}

NetworkWalk WalkNetwork(const std::vector<NetworkSample>& samples, int32_t size,
                        const std::vector<NetworkHost>& hosts) {
  const NetworkPoints points(samples, size, hosts);
  const Paths paths(points);
  const Count count(points, paths);
  NetworkWalk walk;
  walk.channels = count.channels();
  const Votes* votes = count.Winner();
  if (votes == nullptr) return walk;
  const size_t end = TellingEnd(*votes, paths);
  walk.fault = paths.At(end).fault;
  walk.culprit = paths.At(end).culprit;
  walk.peer = paths.At(end).peer;
  walk.agreeing = votes->sure + votes->open;
  walk.hops = HopsTo(points, paths, end);
  ShortenWay(&walk);
  return walk;
}

}  // namespace rollcall
