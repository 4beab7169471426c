// SPDX-License-Identifier: Apache-2.0
// Reads the address of a caller as gRPC writes it. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace rollcall {

struct PeerAddress {
  enum class Family : uint8_t { kIpv4, kIpv6 };
  Family family = Family::kIpv4;
  std::array<uint8_t, 16> bytes = {};  // of IPv4 the first four
  uint16_t port = 0;

  bool IsLoopback() const;  // 127.0.0.0/8, ::1
};

// "ipv4:127.0.0.1:41922", "ipv6:[::1]:41922", also with percent escapes as gRPC 1.51 writes them
// ("ipv6:%5B::1%5D:41922"). An IPv4 address inside IPv6 (::ffff:127.0.0.1) becomes IPv4. nullopt if
// it is malformed, or an address of another kind.
std::optional<PeerAddress> ParsePeer(absl::string_view peer);

// "ipv6:[::1]" of "ipv6:[::1]:41922". Valid as long as `peer` is.
absl::string_view PeerWithoutPort(absl::string_view peer);

// "unix:" and a path or nothing. An abstract socket, which has no permissions, is not one.
bool IsUnixPeer(absl::string_view peer);

// True for a loopback address and a unix socket: no other host can read what it sends.
bool IsPeerOnThisHost(absl::string_view peer);

}  // namespace rollcall
