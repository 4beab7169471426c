// SPDX-License-Identifier: Apache-2.0
#include "agent/outside/tcp_table.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace rollcall {
namespace {

constexpr uint32_t kListens = 0x0a;  // TCP_LISTEN
constexpr size_t kWordDigits = 8;

// Words of the host's byte order, in hexadecimal: "0100007F:1F90".
bool ParseEnd(absl::string_view text, TcpEnd* end) {
  const size_t colon = text.find(':');
  uint32_t port = 0;
  if (colon != kWordDigits && colon != 4 * kWordDigits) return false;
  if (!absl::SimpleHexAtoi(text.substr(colon + 1), &port) || port > UINT16_MAX) return false;
  end->port = static_cast<uint16_t>(port);
  size_t at = 0;
  if (colon == kWordDigits) {
    end->address[10] = end->address[11] = 0xff;
    at = 12;
  }
  for (size_t i = 0; i < colon; i += kWordDigits, at += sizeof(uint32_t)) {
    uint32_t word = 0;
    if (!absl::SimpleHexAtoi(text.substr(i, kWordDigits), &word)) return false;
    std::memcpy(&end->address[at], &word, sizeof(word));
  }
  return true;
}

bool IsAnyAddress(const TcpEnd& end) {
  TcpEnd any4;
  any4.address[10] = any4.address[11] = 0xff;
  return end.address == TcpEnd().address || end.address == any4.address;
}

bool IsLoopback(const TcpEnd& end) {
  TcpEnd loopback6;
  loopback6.address[15] = 1;
  const auto& a = end.address;
  return end.address == loopback6.address || (a[10] == 0xff && a[11] == 0xff && a[12] == 127);
}

// Whether the address that the connection leads to is one of this network namespace.
bool LeadsHere(const std::vector<TcpSocket>& table, const TcpSocket& connection) {
  return IsLoopback(connection.remote) ||
         std::any_of(table.begin(), table.end(), [&connection](const TcpSocket& socket) {
           return socket.local.address == connection.remote.address;
         });
}

bool Accepts(const TcpSocket& socket, const TcpEnd& end, bool leads_here) {
  return socket.listens && socket.local.port == end.port &&
         (socket.local.address == end.address || (leads_here && IsAnyAddress(socket.local)));
}

}  // namespace

std::vector<TcpSocket> ParseTcpTable(const std::string& text) {
  constexpr size_t kLocal = 1, kRemote = 2, kState = 3, kInode = 9;
  std::vector<TcpSocket> table;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    TcpSocket socket;
    uint32_t state = 0;
    if (words.size() <= kInode || !ParseEnd(words[kLocal], &socket.local) ||
        !ParseEnd(words[kRemote], &socket.remote) || !absl::SimpleHexAtoi(words[kState], &state) ||
        !absl::SimpleAtoi(words[kInode], &socket.inode)) {
      continue;
    }
    socket.listens = state == kListens;
    table.push_back(socket);
  }
  return table;
}

const TcpSocket* FindConnection(const std::vector<TcpSocket>& table, uint64_t inode) {
  const auto found = std::find_if(table.begin(), table.end(), [inode](const TcpSocket& socket) {
    return socket.inode == inode && !socket.listens;
  });
  return inode == 0 || found == table.end() ? nullptr : &*found;
}

uint64_t FindOtherSocket(const std::vector<TcpSocket>& table, uint64_t inode) {
  const TcpSocket* own = FindConnection(table, inode);
  if (own == nullptr) return 0;
  for (const TcpSocket& other : table) {
    const bool is_other = other.local == own->remote && other.remote == own->local;
    if (is_other && other.inode != 0) return other.inode;
  }
  const bool leads_here = LeadsHere(table, *own);
  for (const TcpSocket& other : table) {
    if (Accepts(other, own->remote, leads_here)) return other.inode;
  }
  return 0;
}

bool LeadsToAListener(const std::vector<TcpSocket>& table, const TcpSocket& connection) {
  const bool leads_here = LeadsHere(table, connection);
  return std::any_of(table.begin(), table.end(), [&](const TcpSocket& socket) {
    return Accepts(socket, connection.remote, leads_here);
  });
}

bool ListensToNobody(const std::vector<TcpSocket>& table, uint64_t inode) {
  const auto own = std::find_if(table.begin(), table.end(), [inode](const TcpSocket& socket) {
    return socket.inode == inode && socket.listens;
  });
  if (inode == 0 || own == table.end()) return false;
  return std::none_of(table.begin(), table.end(), [&](const TcpSocket& socket) {
    return !socket.listens && socket.inode != 0 && socket.local.port == own->local.port;
  });
}

}  // namespace rollcall
