// SPDX-License-Identifier: Apache-2.0
#include "agent/link/known_daemons.h"

#include <algorithm>
#include <limits>

#include "base/server_address.h"

namespace rollcall {
namespace {

constexpr size_t kMaxAddress = 512;  // bytes

bool Has(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

}  // namespace

bool KnownDaemons::SetGiven(std::vector<std::string> given) {
  if (given.empty() || given == given_) return false;
  given_ = std::move(given);
  return true;
}

bool KnownDaemons::SetDaemons(const std::vector<std::string>& daemons) {
  std::set<std::string> usable;
  for (const std::string& address : daemons) {
    if (usable.size() < kMostDaemons && IsUsable(address)) usable.insert(address);
  }
  std::vector<std::string> all(usable.begin(), usable.end());
  if (all.empty() || all == daemons_) return false;
  daemons_ = std::move(all);
  return true;
}

void KnownDaemons::Opened(const std::string& stream, int64_t now_ns) {
  streams_.emplace(stream, Stream{State::kOpening, now_ns, stream});
}

bool KnownDaemons::Welcomed(const std::string& stream, const std::string& address, bool stays,
                            int64_t now_ns) {
  const auto at = streams_.find(stream);
  if (at == streams_.end()) return false;
  at->second = {stays ? State::kHere : State::kOpening, now_ns,
                IsUsable(address) ? address : stream};
  return true;
}

bool KnownDaemons::Broken(const std::string& stream, int64_t now_ns) {
  const auto at = streams_.find(stream);
  if (at == streams_.end() || at->second.state == State::kAway) return false;
  at->second.state = at->second.state == State::kHere ? State::kBroken : State::kAway;
  at->second.since_ns = now_ns;
  return true;
}

bool KnownDaemons::Expire(int64_t now_ns, int64_t* next_ns) {
  bool has_changed = false;
  for (auto& [address, stream] : streams_) {
    int64_t until_ns = std::numeric_limits<int64_t>::max();
    if (stream.state == State::kOpening) until_ns = stream.since_ns + kWelcomeWithin;
    if (stream.state == State::kBroken) until_ns = stream.since_ns + kBackWithin;
    if (now_ns < until_ns) {
      *next_ns = std::min(*next_ns, until_ns);
      continue;
    }
    stream.state = State::kAway;
    has_changed = true;
  }
  return has_changed;
}

// A file of this host is the agent's to choose, not a daemon's.
bool KnownDaemons::IsUsable(const std::string& address) const {
  if (address.empty() || address.size() > kMaxAddress) return false;
  if (Has(given_, address)) return true;
  const ServerAddress server = SplitServerAddress(address);
  return !server.is_unix && !server.host.empty() && !server.port.empty();
}

const std::string& KnownDaemons::DaemonOf(const std::string& stream) const {
  const auto at = streams_.find(stream);
  return at == streams_.end() ? stream : at->second.daemon;
}

const std::string* KnownDaemons::StreamTo(const std::string& daemon) const {
  const std::string* best = nullptr;
  State best_state = State::kAway;
  for (const auto& [address, stream] : streams_) {
    if (stream.daemon != daemon) continue;
    const bool is_own = address == daemon && stream.state == best_state;
    if (best != nullptr && stream.state >= best_state && !is_own) continue;
    best = &address;
    best_state = stream.state;
  }
  return best;
}

// A stream that is only being opened proves nothing about a daemon whose other stream has failed.
bool KnownDaemons::IsAway(const std::string& daemon) const {
  bool is_away = false;
  for (const auto& [address, stream] : streams_) {
    if (stream.daemon != daemon) continue;
    if (stream.state == State::kHere || stream.state == State::kBroken) return false;
    is_away = is_away || stream.state == State::kAway;
  }
  return is_away;
}

std::vector<std::string> KnownDaemons::All() const {
  if (!daemons_.empty()) return daemons_;
  std::set<std::string> all;
  for (const std::string& address : given_) all.insert(DaemonOf(address));
  return {all.begin(), all.end()};
}

std::vector<std::string> KnownDaemons::Living() const {
  const std::vector<std::string> all = All();
  std::vector<std::string> living;
  for (const std::string& daemon : all) {
    if (!IsAway(daemon)) living.push_back(daemon);
  }
  if (!living.empty()) return living;
  // The daemons that were named may all be gone, and others in their places.
  for (const std::string& address : given_) {
    const std::string& daemon = DaemonOf(address);
    if (!IsAway(daemon) && !Has(living, daemon)) living.push_back(daemon);
  }
  return living.empty() ? all : living;
}

void KnownDaemons::AddStreamTo(const std::string& daemon, std::set<std::string>* streams) const {
  const std::string* stream = StreamTo(daemon);
  streams->insert(stream == nullptr ? daemon : *stream);
  if (IsAway(daemon)) streams->insert(daemon);
}

bool KnownDaemons::IsInFleet(const std::string& address) const {
  return Has(daemons_, DaemonOf(address));
}

}  // namespace rollcall
