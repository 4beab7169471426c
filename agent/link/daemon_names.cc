// SPDX-License-Identifier: Apache-2.0
#include "agent/link/daemon_names.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/server_address.h"

namespace rollcall {
namespace {

bool MayHaveSeveral(const std::string& address) {
  const ServerAddress server = SplitServerAddress(address);
  return !IsOnThisHost(address) && !IsIpAddress(server.host) && !server.host.empty();
}

std::string ToText(const addrinfo& found) {
  char text[NI_MAXHOST];
  const int failed =
      getnameinfo(found.ai_addr, found.ai_addrlen, text, sizeof(text), nullptr, 0, NI_NUMERICHOST);
  return failed == 0 ? text : "";
}

std::string WithPort(const std::string& ip, const std::string& port) {
  const bool is_v6 = ip.find(':') != std::string::npos;
  return is_v6 ? absl::StrCat("[", ip, "]:", port) : absl::StrCat(ip, ":", port);
}

std::vector<NamedDaemon> ResolveOne(const std::string& address, const HostResolver& resolve) {
  if (!MayHaveSeveral(address)) return {{address, ""}};
  const ServerAddress server = SplitServerAddress(address);
  const std::vector<std::string> ips = resolve(server.host);
  if (ips.size() < 2) return {{address, ""}};
  std::vector<NamedDaemon> daemons;
  for (const std::string& ip : ips) daemons.push_back({WithPort(ip, server.port), server.host});
  return daemons;
}

}  // namespace

std::vector<std::string> SplitDaemons(const std::string& list) {
  std::vector<std::string> daemons;
  for (const absl::string_view part : absl::StrSplit(list, ',')) {
    const absl::string_view address = absl::StripAsciiWhitespace(part);
    if (!address.empty()) daemons.emplace_back(address);
  }
  if (daemons.empty()) daemons.push_back(list);
  return daemons;
}

std::vector<std::string> ResolveHost(const std::string& host) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* list = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &list) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(list, &freeaddrinfo);
  std::set<std::string> v4, v6;
  for (const addrinfo* found = list; found != nullptr; found = found->ai_next) {
    const std::string text = ToText(*found);
    if (!text.empty()) (found->ai_family == AF_INET ? v4 : v6).insert(text);
  }
  const std::set<std::string>& chosen = v4.empty() ? v6 : v4;
  return {chosen.begin(), chosen.end()};
}

bool MayNameSeveral(const std::string& list) {
  const std::vector<std::string> daemons = SplitDaemons(list);
  return std::any_of(daemons.begin(), daemons.end(), MayHaveSeveral);
}

std::vector<NamedDaemon> ResolveDaemons(const std::string& list, const HostResolver& resolve) {
  std::vector<NamedDaemon> daemons;
  std::set<std::string> known;
  for (const std::string& address : SplitDaemons(list)) {
    for (NamedDaemon& daemon : ResolveOne(address, resolve)) {
      if (known.insert(daemon.address).second) daemons.push_back(std::move(daemon));
    }
  }
  return daemons;
}

}  // namespace rollcall
