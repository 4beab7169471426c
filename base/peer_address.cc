// SPDX-License-Identifier: Apache-2.0
#include "base/peer_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace rollcall {
namespace {

constexpr size_t kLongest = 256;
constexpr std::array<uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

std::optional<std::string> DecodePercent(absl::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const absl::string_view digits = text.substr(i + 1, 2);
    const bool are_two =
        digits.size() == 2 && std::all_of(digits.begin(), digits.end(), absl::ascii_isxdigit);
    uint32_t byte = 0;
    if (!are_two || !absl::SimpleHexAtoi(digits, &byte)) return std::nullopt;
    decoded += static_cast<char>(byte);
    i += 2;
  }
  return decoded;
}

std::optional<uint16_t> ParsePort(absl::string_view text) {
  uint32_t port = 0;
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
  if (!digits || !absl::SimpleAtoi(text, &port) || port == 0 || port > 65535) return std::nullopt;
  return static_cast<uint16_t>(port);
}

std::optional<PeerAddress> Make(PeerAddress::Family family, const std::string& host,
                                absl::string_view port_text) {
  const std::optional<uint16_t> port = ParsePort(port_text);
  if (!port.has_value() || host.find('\0') != std::string::npos) return std::nullopt;
  PeerAddress address;
  address.family = family;
  address.port = *port;
  const int kind = family == PeerAddress::Family::kIpv4 ? AF_INET : AF_INET6;
  if (inet_pton(kind, host.c_str(), address.bytes.data()) != 1) return std::nullopt;
  if (kind == AF_INET6 && std::equal(kMapped.begin(), kMapped.end(), address.bytes.begin())) {
    address.family = PeerAddress::Family::kIpv4;
    std::copy(address.bytes.begin() + kMapped.size(), address.bytes.end(), address.bytes.begin());
    std::fill(address.bytes.begin() + 4, address.bytes.end(), 0);
  }
  return address;
}

}  // namespace

bool PeerAddress::IsLoopback() const {
  if (family == Family::kIpv4) return bytes[0] == 127;
  return std::all_of(bytes.begin(), bytes.end() - 1, [](uint8_t byte) { return byte == 0; }) &&
         bytes.back() == 1;
}

std::optional<PeerAddress> ParsePeer(absl::string_view peer) {
  if (peer.size() > kLongest) return std::nullopt;
  const std::optional<std::string> decoded = DecodePercent(peer);
  if (!decoded.has_value()) return std::nullopt;
  absl::string_view text = *decoded;
  if (absl::ConsumePrefix(&text, "ipv4:")) {
    const size_t colon = text.rfind(':');
    if (colon == absl::string_view::npos) return std::nullopt;
    return Make(PeerAddress::Family::kIpv4, std::string(text.substr(0, colon)),
                text.substr(colon + 1));
  }
  if (!absl::ConsumePrefix(&text, "ipv6:[")) return std::nullopt;
  const size_t end = text.rfind("]:");
  if (end == absl::string_view::npos) return std::nullopt;
  return Make(PeerAddress::Family::kIpv6, std::string(text.substr(0, end)), text.substr(end + 2));
}

absl::string_view PeerWithoutPort(absl::string_view peer) {
  return IsUnixPeer(peer) ? peer : peer.substr(0, peer.rfind(':'));
}

bool IsUnixPeer(absl::string_view peer) { return absl::StartsWith(peer, "unix:"); }

bool IsPeerOnThisHost(absl::string_view peer) {
  if (IsUnixPeer(peer)) return true;
  const std::optional<PeerAddress> address = ParsePeer(peer);
  return address.has_value() && address->IsLoopback();
}

}  // namespace rollcall
