// SPDX-License-Identifier: Apache-2.0
#include "agent/link/same_daemon.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "base/server_address.h"

namespace rollcall {
namespace {

constexpr char kListening[] = "0A";  // in /proc/net/tcp

// An address of a daemon as it stands in a list, and those that it resolves to.
struct NamedPlace {
  std::string name, port;
  bool is_unix = false;
  std::vector<std::string> addresses;
};

NamedPlace PlaceOf(absl::string_view daemon) {
  const ServerAddress server = SplitServerAddress(std::string(absl::StripAsciiWhitespace(daemon)));
  NamedPlace place;
  place.name = server.host == "localhost" ? "127.0.0.1" : absl::AsciiStrToLower(server.host);
  place.port = server.port;
  place.is_unix = server.is_unix;
  if (place.is_unix) place.name = server.host;
  return place;
}

std::vector<NamedPlace> PlacesOf(const std::string& list) {
  std::vector<NamedPlace> places;
  for (const std::string& daemon : SplitDaemons(list)) places.push_back(PlaceOf(daemon));
  return places;
}

bool HaveOneName(const NamedPlace& one, const NamedPlace& other) {
  return one.name == other.name && one.port == other.port && one.is_unix == other.is_unix;
}

void Resolve(const HostResolver& resolve, std::vector<NamedPlace>* places) {
  for (NamedPlace& place : *places) {
    if (place.is_unix) continue;
    place.addresses =
        IsIpAddress(place.name) ? std::vector<std::string>{place.name} : resolve(place.name);
  }
}

bool HaveOneAddress(const NamedPlace& one, const NamedPlace& other) {
  return std::any_of(one.addresses.begin(), one.addresses.end(), [&other](const std::string& a) {
    return std::find(other.addresses.begin(), other.addresses.end(), a) != other.addresses.end();
  });
}

bool IsOfThisHost(const NamedPlace& place, const OwnHost& own) {
  return std::any_of(place.addresses.begin(), place.addresses.end(), [&own](const std::string& a) {
    return IsOnThisHost(absl::StrContains(a, ':') ? "[" + a + "]:1" : a + ":1") ||
           own.addresses.count(a) != 0;
  });
}

// `one` and `other` have the same port.
bool AreOneListener(const NamedPlace& one, const NamedPlace& other, const OwnHost& own) {
  int port = 0;
  return absl::SimpleAtoi(one.port, &port) && IsOfThisHost(one, own) && IsOfThisHost(other, own) &&
         own.count_listeners(port) == 1;
}

// Lines of /proc/net/tcp: "0: 0100007F:1DE7 00000000:0000 0A ...".
int CountListeners(int wanted) {
  int count = 0;
  for (const char* file : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::ifstream lines(file);
    std::string line;
    std::getline(lines, line);  // the heading
    while (std::getline(lines, line)) {
      std::istringstream columns(line);
      std::string number, local, remote, state;
      columns >> number >> local >> remote >> state;
      const size_t colon = local.rfind(':');
      uint32_t port = 0;
      if (state != kListening || colon == std::string::npos) continue;
      if (!absl::SimpleHexAtoi(local.substr(colon + 1), &port)) continue;
      count += port == static_cast<uint32_t>(wanted) ? 1 : 0;
    }
  }
  return count;
}

}  // namespace

OwnHost DescribeOwnHost() {
  OwnHost own;
  own.count_listeners = CountListeners;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return own;
  const absl::Cleanup free_all = [all] { freeifaddrs(all); };
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    const bool is_v6 = one->ifa_addr->sa_family == AF_INET6;
    if (!is_v6 && one->ifa_addr->sa_family != AF_INET) continue;
    const void* address =
        is_v6 ? static_cast<const void*>(
                    &reinterpret_cast<const sockaddr_in6*>(one->ifa_addr)->sin6_addr)
              : static_cast<const void*>(
                    &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr);
    char text[INET6_ADDRSTRLEN] = {};
    if (inet_ntop(one->ifa_addr->sa_family, address, text, sizeof(text)) != nullptr) {
      own.addresses.insert(text);
    }
  }
  return own;
}

bool HaveOneDaemon(const std::string& some, const std::string& others, const HostResolver& resolve,
                   const std::function<OwnHost()>& own_host) {
  std::vector<NamedPlace> here = PlacesOf(some), there = PlacesOf(others);
  const auto any = [&here, &there](const auto& is_one) {
    for (const NamedPlace& one : here) {
      for (const NamedPlace& other : there) {
        if (is_one(one, other)) return true;
      }
    }
    return false;
  };
  if (any(HaveOneName)) return true;
  const auto have_one_port = [](const NamedPlace& one, const NamedPlace& other) {
    return !one.is_unix && !other.is_unix && one.port == other.port;
  };
  if (!any(have_one_port)) return false;  // DNS has nothing to add
  Resolve(resolve, &here);
  Resolve(resolve, &there);
  const OwnHost own = own_host();
  return any([&](const NamedPlace& one, const NamedPlace& other) {
    return have_one_port(one, other) &&
           (HaveOneAddress(one, other) || AreOneListener(one, other, own));
  });
}

}  // namespace rollcall
