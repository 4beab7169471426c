// SPDX-License-Identifier: Apache-2.0
#include "base/server_address.h"

#include <arpa/inet.h>

#include <array>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace rollcall {
namespace {

constexpr std::array<const char*, 5> kSchemes = {"dns:///",
                                                 "dns:", "ipv4:", "ipv6:", "passthrough:///"};

// inet_pton() would ignore a NUL and what follows it.
bool ReadIp(int family, const std::string& host, void* bytes) {
  return host.find('\0') == std::string::npos && inet_pton(family, host.c_str(), bytes) == 1;
}

}  // namespace

ServerAddress SplitServerAddress(const std::string& address) {
  absl::string_view rest = address;
  if (absl::ConsumePrefix(&rest, "unix:")) {
    while (absl::StartsWith(rest, "//")) rest.remove_prefix(1);  // unix:///PATH
    return {std::string(rest), "", true};
  }
  for (const char* scheme : kSchemes) {
    if (absl::ConsumePrefix(&rest, scheme)) break;
  }
  if (absl::ConsumePrefix(&rest, "[")) {
    const size_t end = rest.find(']');
    if (end == absl::string_view::npos) return {std::string(rest), "", false};
    absl::string_view port = rest.substr(end + 1);
    absl::ConsumePrefix(&port, ":");
    return {std::string(rest.substr(0, end)), std::string(port), false};
  }
  const size_t colon = rest.rfind(':');
  if (colon == absl::string_view::npos || rest.find(':') != colon) {
    return {std::string(rest), "", false};
  }
  return {std::string(rest.substr(0, colon)), std::string(rest.substr(colon + 1)), false};
}

bool IsIpAddress(const std::string& host) {
  in6_addr ignored;
  return ReadIp(AF_INET, host, &ignored) || ReadIp(AF_INET6, host, &ignored);
}

bool IsOnThisHost(const std::string& address) {
  const ServerAddress server = SplitServerAddress(address);
  if (server.is_unix || absl::EqualsIgnoreCase(server.host, "localhost")) return true;
  in_addr v4;
  if (ReadIp(AF_INET, server.host, &v4)) return ntohl(v4.s_addr) >> 24 == 127;
  in6_addr v6;
  return ReadIp(AF_INET6, server.host, &v6) && IN6_IS_ADDR_LOOPBACK(&v6);
}

}  // namespace rollcall
