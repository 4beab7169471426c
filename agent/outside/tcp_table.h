// SPDX-License-Identifier: Apache-2.0
// The TCP sockets of a network namespace as /proc/PID/net/tcp and tcp6 list them, and the socket of
// the same table at the other end of one of them. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace rollcall {

struct TcpEnd {
  std::array<uint8_t, 16> address = {};  // of IPv4 as IPv6 maps it
  uint16_t port = 0;

  bool operator==(const TcpEnd& other) const {
    return address == other.address && port == other.port;
  }
};

struct TcpSocket {
  TcpEnd local, remote;
  bool listens = false;
  uint64_t inode = 0;  // 0 if the program has not accepted it yet, or has closed it
};

// Ignores lines of another form.
std::vector<TcpSocket> ParseTcpTable(const std::string& text);

// nullptr if the table has no connection with this inode.
const TcpSocket* FindConnection(const std::vector<TcpSocket>& table, uint64_t inode);

// The inode of the socket at the other end; of a connection not yet accepted, that of the socket
// that listens. 0 if the other end is elsewhere.
uint64_t FindOtherSocket(const std::vector<TcpSocket>& table, uint64_t inode);

// Whether the connection leads to a socket of the table that still listens, so that this side has
// made it. False also if that is not known.
bool LeadsToAListener(const std::vector<TcpSocket>& table, const TcpSocket& connection);

// Whether the socket with this inode listens and its port has no connection.
bool ListensToNobody(const std::vector<TcpSocket>& table, uint64_t inode);

}  // namespace rollcall
