// SPDX-License-Identifier: Apache-2.0
// Whether two lists of daemons, as --daemon takes them, have a daemon in common, whatever names
// they give it: a name of DNS and its alias, an address, localhost.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "agent/link/daemon_names.h"

namespace rollcall {

// The addresses and listening sockets of this host.
struct OwnHost {
  std::set<std::string> addresses;  // of its interfaces, without loopback
  // The number of sockets that listen on this TCP port, on whichever address.
  std::function<int(int port)> count_listeners;
};
OwnHost DescribeOwnHost();

// Compares the names, then what `resolve` finds for them, which may block for as long as DNS does.
// Two addresses of this host with one port are one daemon if a single socket listens on that port.
// False if that is not known.
bool HaveOneDaemon(const std::string& some, const std::string& others, const HostResolver& resolve,
                   const std::function<OwnHost()>& own_host);

}  // namespace rollcall
