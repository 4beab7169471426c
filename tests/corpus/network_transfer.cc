// SPDX-License-Identifier: Apache-2.0
#include "network_transfer.h"

#include <algorithm>

namespace rollcall::corpus {
namespace {

NetworkWait SendWaitOf(const Connection& c) {
  if (c.send_posted == c.sent) return NetworkWait::kNone;
  if (c.transmitted > c.sent) return NetworkWait::kSend;
  return c.produced > c.sent ? NetworkWait::kSendPeer : NetworkWait::kSendGpu;
}

NetworkWait ReceiveWaitOf(const Connection& c) {
  if (c.receive_posted == c.receive_done) return NetworkWait::kNone;
  return c.received > c.receive_done ? NetworkWait::kReceiveGpu : NetworkWait::kReceive;
}

}  // namespace

Transfer::Transfer(std::vector<Connection> connections, std::vector<KernelPart> parts,
                   std::vector<RankSpeed> ranks, bool is_socket, uint64_t socket_steps)
    : connections_(std::move(connections)),
      parts_(std::move(parts)),
      ranks_(std::move(ranks)),
      giver_(connections_.size(), 0),
      taker_(connections_.size(), 0),
      is_socket_(is_socket),
      socket_steps_(socket_steps),
      is_pending_(parts_.size() + 3 * connections_.size(), false) {
  for (size_t i = 0; i < parts_.size(); ++i) {
    for (const size_t c : parts_[i].in) taker_[c] = i;
    for (const size_t c : parts_[i].out) giver_[c] = i;
    Wake(Kind::kPart, i);
  }
  for (size_t i = 0; i < connections_.size(); ++i) {
    for (const Kind kind : {Kind::kSend, Kind::kReceive}) Wake(kind, i);
  }
}

size_t Transfer::NumberOf(Kind kind, size_t which) const {
  if (kind == Kind::kPart) return which;
  return parts_.size() + 3 * which + (kind == Kind::kSend ? 0 : kind == Kind::kLink ? 1 : 2);
}

int64_t Transfer::DelayOf(Kind kind, size_t which) const {
  switch (kind) {
    case Kind::kPart:
      return ranks_[static_cast<size_t>(parts_[which].rank)].kernel_ns;
    case Kind::kSend:
      return ranks_[static_cast<size_t>(connections_[which].src)].proxy_ns;
    case Kind::kReceive:
      return ranks_[static_cast<size_t>(connections_[which].dst)].proxy_ns;
    case Kind::kLink:
      return connections_[which].link_ns;
  }
  return 0;
}

bool Transfer::IsStopped(Kind kind, size_t which) const {
  switch (kind) {
    case Kind::kPart:
      return now_ >= ranks_[static_cast<size_t>(parts_[which].rank)].kernel_stops_at;
    case Kind::kSend:
      return now_ >= ranks_[static_cast<size_t>(connections_[which].src)].proxy_stops_at;
    case Kind::kReceive:
      return now_ >= ranks_[static_cast<size_t>(connections_[which].dst)].proxy_stops_at;
    case Kind::kLink:
      return now_ >= connections_[which].dies_at;
  }
  return false;
}

void Transfer::Wake(Kind kind, size_t which) {
  if (kind != Kind::kPart && !connections_[which].is_network) return;
  const size_t number = NumberOf(kind, which);
  if (is_pending_[number]) return;
  is_pending_[number] = true;
  int64_t from = now_;
  if (kind == Kind::kPart) {
    from = std::max(from, ranks_[static_cast<size_t>(parts_[which].rank)].starts_at);
  } else if (kind != Kind::kLink) {
    const Connection& c = connections_[which];
    from =
        std::max(from, ranks_[static_cast<size_t>(kind == Kind::kSend ? c.src : c.dst)].starts_at);
  }
  events_.push({from + DelayOf(kind, which), next_number_++, kind, which});
}

bool Transfer::HasRoom(const Connection& c) const {
  return c.produced < (c.is_network ? c.sent : c.taken) + kBuffers;
}

bool Transfer::CanRun(const KernelPart& part, const KernelStep& step) const {
  const auto has_data = [&](size_t i) {
    const Connection& c = connections_[i];
    return c.taken < (c.is_network ? c.received : c.produced);
  };
  const auto has_room = [&](size_t i) { return HasRoom(connections_[i]); };
  return (!step.takes || std::all_of(part.in.begin(), part.in.end(), has_data)) &&
         (!step.gives || std::all_of(part.out.begin(), part.out.end(), has_room));
}

bool Transfer::RunPart(KernelPart* part) {
  if (part->at == part->steps.size()) return false;
  const KernelStep& step = part->steps[part->at];
  if (!CanRun(*part, step)) return false;
  if (step.takes) {
    for (const size_t c : part->in) ++connections_[c].taken;
  }
  if (step.gives) {
    for (const size_t c : part->out) ++connections_[c].produced;
  }
  if (++part->done == step.count) {
    part->done = 0;
    ++part->at;
  }
  return true;
}

// One action of the thread that sends, the oldest step first.
bool Transfer::RunSend(Connection* c) {
  const bool has_left = is_socket_ ? c->sent < c->arrived + socket_steps_ : c->sent < c->arrived;
  if (c->sent < c->transmitted && has_left) {
    ++c->sent;
    return true;
  }
  const bool has_place = is_socket_ || c->transmitted < c->receive_posted;
  if (c->transmitted < c->send_posted && c->transmitted < c->produced && has_place) {
    ++c->transmitted;
    return true;
  }
  if (c->send_posted == c->total || c->send_posted == c->sent + kBuffers) return false;
  ++c->send_posted;
  return true;
}

bool Transfer::RunLink(Connection* c) {
  if (c->arrived == c->transmitted || c->arrived == c->receive_posted) return false;
  ++c->arrived;
  return true;
}

bool Transfer::RunReceive(Connection* c) {
  if (c->receive_done < c->taken) {
    ++c->receive_done;
    return true;
  }
  if (c->received < c->arrived) {
    ++c->received;
    return true;
  }
  const bool is_full = c->receive_posted == c->receive_done + kBuffers;
  if (c->receive_posted == c->total || is_full) return false;
  ++c->receive_posted;
  return true;
}

void Transfer::Act(Kind kind, size_t which) {
  if (kind == Kind::kPart) {
    KernelPart& part = parts_[which];
    if (!RunPart(&part)) return;
    Wake(kind, which);
    for (const size_t c : part.in)
      Wake(connections_[c].is_network ? Kind::kReceive : Kind::kPart,
           connections_[c].is_network ? c : giver_[c]);
    for (const size_t c : part.out)
      Wake(connections_[c].is_network ? Kind::kSend : Kind::kPart,
           connections_[c].is_network ? c : taker_[c]);
    return;
  }
  Connection& c = connections_[which];
  const uint64_t sent = c.sent, received = c.receive_done;
  const bool any = kind == Kind::kSend   ? RunSend(&c)
                   : kind == Kind::kLink ? RunLink(&c)
                                         : RunReceive(&c);
  if (kind == Kind::kSend) {
    const NetworkWait wait = SendWaitOf(c);
    if (wait != c.send_wait || sent != c.sent) c.send_since = now_;
    c.send_wait = wait;
  }
  if (kind == Kind::kReceive) {
    const NetworkWait wait = ReceiveWaitOf(c);
    if (wait != c.receive_wait || received != c.receive_done) c.receive_since = now_;
    c.receive_wait = wait;
  }
  if (!any) return;
  Wake(kind, which);
  if (kind != Kind::kLink) Wake(Kind::kLink, which);
  if (kind != Kind::kSend) Wake(Kind::kSend, which);
  if (kind == Kind::kSend && sent != c.sent) Wake(Kind::kPart, giver_[which]);
  if (kind == Kind::kLink) Wake(Kind::kReceive, which);
  if (kind == Kind::kReceive) Wake(Kind::kPart, taker_[which]);
}

void Transfer::RunUntil(int64_t time_ns) {
  while (!events_.empty() && events_.top().at <= time_ns) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.at;
    is_pending_[NumberOf(event.kind, event.which)] = false;
    ++events_run_;
    if (!IsStopped(event.kind, event.which)) Act(event.kind, event.which);
  }
  now_ = std::max(now_, time_ns);
}

bool Transfer::IsDone() const {
  return std::all_of(parts_.begin(), parts_.end(),
                     [](const KernelPart& part) { return part.at == part.steps.size(); });
}

// What the rank has not posted shows the operation before.
std::vector<NetworkState> Transfer::StatesOf(int rank) const {
  const uint64_t earlier = ranks_[static_cast<size_t>(rank)].earlier_steps;
  std::vector<NetworkState> states;
  const auto add = [&](const NetworkState& state) {
    if (state.begun != 0) states.push_back(state);
    if (state.begun != 0 || earlier == 0) return;
    states.push_back({state.channel, state.peer, state.sends, earlier, earlier});
  };
  for (const Connection& c : connections_) {
    if (!c.is_network) continue;
    if (c.src == rank) {
      add({c.channel, c.dst, true, c.send_posted, c.sent, c.send_wait, c.send_since});
    }
    if (c.dst == rank) {
      add({c.channel, c.src, false, c.receive_posted, c.receive_done, c.receive_wait,
           c.receive_since});
    }
  }
  return states;
}

}  // namespace rollcall::corpus
