// SPDX-License-Identifier: Apache-2.0
#include "network_shapes.h"

#include <utility>

namespace rollcall::corpus {
namespace {

class Planner {
 public:
  explicit Planner(const Layout& layout) : layout_(layout) {}

  Plan Make() {
    for (channel_ = 0; channel_ < layout_.channels; ++channel_) {
      switch (layout_.algorithm) {
        case Algorithm::kRing:
          AddRing(true);
          break;
        case Algorithm::kChain:
          AddRing(false);
          break;
        case Algorithm::kTree:
          AddTree();
          break;
        case Algorithm::kShift:
          AddShift();
          break;
      }
    }
    for (const KernelPart& part : plan_.parts) {
      uint64_t takes = 0, gives = 0;
      for (const KernelStep& step : part.steps) {
        takes += step.takes ? step.count : 0;
        gives += step.gives ? step.count : 0;
      }
      for (const size_t c : part.in) plan_.connections[c].total = takes;
      for (const size_t c : part.out) plan_.connections[c].total = gives;
    }
    return std::move(plan_);
  }

 private:
  size_t Connect(int src, int dst) {
    Connection c;
    c.src = src;
    c.dst = dst;
    c.channel = channel_;
    c.is_network = src / layout_.per_host != dst / layout_.per_host;
    c.link_ns = layout_.link_ns;
    plan_.connections.push_back(c);
    return plan_.connections.size() - 1;
  }

  void AddPart(int rank, std::vector<size_t> in, std::vector<size_t> out,
               std::vector<KernelStep> steps) {
    KernelPart part;
    part.rank = rank;
    part.in = std::move(in);
    part.out = std::move(out);
    part.steps = std::move(steps);
    plan_.parts.push_back(std::move(part));
  }

  // The nth rank of a host on this channel: each enters and leaves the hosts at other ranks.
  int RankAt(int host, int n) const {
    return host * layout_.per_host + (n + channel_) % layout_.per_host;
  }

  // Every other channel goes the other way round.
  std::vector<int> RingOrder() const {
    std::vector<int> order;
    for (int i = 0; i < layout_.hosts; ++i) {
      const int host = channel_ % 2 == 0 ? i : layout_.hosts - 1 - i;
      for (int n = 0; n < layout_.per_host; ++n) order.push_back(RankAt(host, n));
    }
    return order;
  }

  // A ring, or a chain from its first rank to its last.
  void AddRing(bool closes) {
    const std::vector<int> order = RingOrder();
    const size_t n = order.size();
    std::vector<size_t> to;  // the connection from each to the next
    for (size_t i = 0; i + (closes ? 0 : 1) < n; ++i) {
      to.push_back(Connect(order[i], order[(i + 1) % n]));
    }
    for (size_t i = 0; i < n; ++i) {
      std::vector<size_t> in, out;
      if (closes || i > 0) in.push_back(to[(i + n - 1) % n]);
      if (closes || i + 1 < n) out.push_back(to[i]);
      std::vector<KernelStep> steps;
      if (!closes) {
        steps.push_back({!in.empty(), !out.empty(), layout_.loops});
      } else {
        for (uint64_t loop = 0; loop < layout_.loops; ++loop) {
          steps.push_back({false, true, 1});
          if (n > 1) steps.push_back({true, true, 2 * n - 3});
          steps.push_back({true, false, 1});
        }
      }
      AddPart(order[i], std::move(in), std::move(out), std::move(steps));
    }
  }

  // The parent of the ith host of a binary tree in which a host's lowest bit is its height.
  int ParentOf(int i) const {
    const int bit = i & -i;
    const int up = (i ^ bit) | (bit << 1);
    return up < layout_.hosts ? up : i ^ bit;
  }

  // The host at a place in the tree of this channel: what is a leaf in one is not in the other.
  int HostAt(int i) const {
    const int n = layout_.hosts;
    if (channel_ % 2 == 0) return i;
    return n % 2 == 0 ? n - 1 - i : (i + 1) % n;
  }

  // Within a host a chain leads up to the rank that has the links.
  void AddTree() {
    const auto hosts = static_cast<size_t>(layout_.hosts);
    std::vector<size_t> up(hosts, 0), down(hosts, 0);         // to and from the parent
    std::vector<std::vector<size_t>> from(hosts), to(hosts);  // the children
    for (int i = 1; i < layout_.hosts; ++i) {
      const int parent = ParentOf(i), rank = RankAt(HostAt(i), 0),
                above = RankAt(HostAt(parent), 0);
      const auto at = static_cast<size_t>(i), parent_at = static_cast<size_t>(parent);
      up[at] = Connect(rank, above);
      down[at] = Connect(above, rank);
      from[parent_at].push_back(up[at]);
      to[parent_at].push_back(down[at]);
    }
    for (int i = 0; i < layout_.hosts; ++i) {
      const auto at = static_cast<size_t>(i);
      AddChain(HostAt(i), &from[at], &to[at]);
      const int rank = RankAt(HostAt(i), 0);
      if (i == 0) {
        AddPart(rank, from[at], to[at], Steps(from[at], to[at]));
        continue;
      }
      AddPart(rank, from[at], {up[at]}, Steps(from[at], {up[at]}));
      AddPart(rank, {down[at]}, to[at], Steps({down[at]}, to[at]));
    }
  }

  void AddChain(int host, std::vector<size_t>* from, std::vector<size_t>* to) {
    std::vector<size_t> ups, downs;
    for (int n = 1; n < layout_.per_host; ++n) {
      ups.push_back(Connect(RankAt(host, n), RankAt(host, n - 1)));
      downs.push_back(Connect(RankAt(host, n - 1), RankAt(host, n)));
    }
    for (int n = 1; n < layout_.per_host; ++n) {
      const auto at = static_cast<size_t>(n - 1);
      std::vector<size_t> in, out;
      if (n + 1 < layout_.per_host) in.push_back(ups[at + 1]), out.push_back(downs[at + 1]);
      AddPart(RankAt(host, n), in, {ups[at]}, Steps(in, {ups[at]}));
      AddPart(RankAt(host, n), {downs[at]}, out, Steps({downs[at]}, out));
    }
    if (ups.empty()) return;
    from->push_back(ups[0]);
    to->push_back(downs[0]);
  }

  std::vector<KernelStep> Steps(const std::vector<size_t>& in,
                                const std::vector<size_t>& out) const {
    return {{!in.empty(), !out.empty(), layout_.loops}};
  }

  // Each rank sends to the one that is some ranks further, and receives by other threads.
  void AddShift() {
    const int n = layout_.ranks();
    const int by = 1 + (channel_ * 3) % (n - 1);
    for (int rank = 0; rank < n; ++rank) {
      const int to = (rank + by) % n;
      if (to / layout_.per_host == rank / layout_.per_host) continue;
      const size_t c = Connect(rank, to);
      AddPart(rank, {}, {c}, {{false, true, layout_.loops}});
      AddPart(to, {c}, {}, {{true, false, layout_.loops}});
    }
  }

  const Layout& layout_;
  Plan plan_;
  int channel_ = 0;
};

}  // namespace

Plan MakePlan(const Layout& layout) { return Planner(layout).Make(); }

}  // namespace rollcall::corpus
