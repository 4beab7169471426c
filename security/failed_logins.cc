// SPDX-License-Identifier: Apache-2.0
#include "security/failed_logins.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

#include "base/durations.h"
#include "base/peer_address.h"

namespace rollcall {
namespace {

constexpr size_t kNetworkBytes = 8;  // of an IPv6 address

}  // namespace

std::string NetworkOf(std::string_view peer) {
  const absl::string_view whole(peer.data(), peer.size());
  if (!IsUnixPeer(whole) && IsPeerOnThisHost(whole)) return "loopback";
  const std::string_view address = peer.substr(0, peer.rfind(':'));
  constexpr std::string_view kIpv6 = "ipv6:[";
  if (address.substr(0, kIpv6.size()) != kIpv6) return std::string(address);
  const std::string text(address.substr(kIpv6.size(), address.find(']') - kIpv6.size()));
  in6_addr bytes = {};
  if (inet_pton(AF_INET6, text.c_str(), &bytes) != 1) return std::string(address);
  std::memset(&bytes.s6_addr[kNetworkBytes], 0, sizeof(bytes) - kNetworkBytes);
  char network[INET6_ADDRSTRLEN] = "";
  inet_ntop(AF_INET6, &bytes, network, sizeof(network));
  return std::string("ipv6:") + network;
}

bool FailedLogins::IsOver(const Entry& entry, int64_t now_ns) const {
  return now_ns - entry.since_ns >= limits_.window_ns;
}

int FailedLogins::BlockedFor(std::string_view peer, int64_t now_ns) const {
  const MutexLock lock(mutex_);
  const auto at = entries_.find(NetworkOf(peer));
  if (at == entries_.end() || IsOver(at->second, now_ns)) return 0;
  if (at->second.failures < limits_.failures) return 0;
  const int64_t left_ns = limits_.window_ns - (now_ns - at->second.since_ns);
  return static_cast<int>((left_ns + kSecond - 1) / kSecond);
}

// The entry of this peer in the window of now.
FailedLogins::Entry* FailedLogins::Use(std::string_view peer, int64_t now_ns) {
  const std::string network = NetworkOf(peer);
  const auto at = entries_.find(network);
  if (at != entries_.end()) {
    if (IsOver(at->second, now_ns)) at->second = {0, now_ns, false};
    return &at->second;
  }
  if (entries_.size() >= limits_.addresses) {
    entries_.erase(std::min_element(
        entries_.begin(), entries_.end(),
        [](const auto& a, const auto& b) { return a.second.since_ns < b.second.since_ns; }));
  }
  Entry& entry = entries_[network];
  entry.since_ns = now_ns;
  return &entry;
}

int FailedLogins::Begin(std::string_view peer, int64_t now_ns) {
  const int blocked_s = BlockedFor(peer, now_ns);
  const MutexLock lock(mutex_);
  if (blocked_s == 0) ++Use(peer, now_ns)->failures;
  return blocked_s;
}

void FailedLogins::Succeeded(std::string_view peer, int64_t now_ns) {
  const MutexLock lock(mutex_);
  Entry* entry = Use(peer, now_ns);
  entry->failures = std::max(0, entry->failures - 1);
}

bool FailedLogins::ShouldLog(std::string_view peer, int64_t now_ns) {
  const MutexLock lock(mutex_);
  Entry* entry = Use(peer, now_ns);
  const bool should_log = !entry->is_logged;
  entry->is_logged = true;
  return should_log;
}

}  // namespace rollcall
