// SPDX-License-Identifier: Apache-2.0
// The daemons that --daemon names: one, several with commas between them, or a name with several
// addresses in DNS.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace rollcall {

// "A:1,B:2" -> "A:1" and "B:2". At least one: "" is itself.
std::vector<std::string> SplitDaemons(const std::string& list);

struct NamedDaemon {
  std::string address;  // HOST:PORT or unix:PATH
  std::string name;     // the host that its certificate must hold; empty means that of the address
};

// The IP addresses of a host; empty if unknown. May block for as long as DNS does.
using HostResolver = std::function<std::vector<std::string>(const std::string& host)>;

// IPv4 only if there are any: a daemon with an address of each kind is one daemon.
std::vector<std::string> ResolveHost(const std::string& host);

// Whether the list has a name that may have several addresses.
bool MayNameSeveral(const std::string& list);

// Each address of a name is a daemon. A name with one address, or with none now, stays as it is.
// Without duplicates.
std::vector<NamedDaemon> ResolveDaemons(const std::string& list, const HostResolver& resolve);

}  // namespace rollcall
