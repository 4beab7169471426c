// SPDX-License-Identifier: Apache-2.0
// The address of a daemon, as gRPC writes it. Pure.
#pragma once

#include <string>

namespace rollcall {

struct ServerAddress {
  std::string host;  // "node-1", "10.0.0.1", "::1"; of a unix socket its path
  std::string port;  // "" if the address has none
  bool is_unix = false;
};

// Understands "HOST:PORT", "[IPV6]:PORT", "dns:///HOST:PORT", "ipv4:IP:PORT", "ipv6:[IP]:PORT",
// "unix:PATH". Host and port are what is there; this function does not fail.
ServerAddress SplitServerAddress(const std::string& address);

// "127.0.0.1", not "0127.0.0.1" or a name.
bool IsIpAddress(const std::string& host);

// True for unix sockets, localhost, 127.0.0.0/8 and ::1: no other host can read what is sent there.
bool IsOnThisHost(const std::string& address);

}  // namespace rollcall
