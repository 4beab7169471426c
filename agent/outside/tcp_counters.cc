// SPDX-License-Identifier: Apache-2.0
#include "agent/outside/tcp_counters.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "base/unique_fd.h"

namespace rollcall {
namespace {

constexpr size_t kPrefixBytes = 12;  // of an IPv4 address as IPv6 maps it

struct TcpRequest {
  nlmsghdr header;
  inet_diag_req_v2 body;
};

bool IsIpv4(const TcpEnd& end) {
  constexpr std::array<uint8_t, kPrefixBytes> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::equal(kMapped.begin(), kMapped.end(), end.address.begin());
}

void CopyAddress(const TcpEnd& end, bool is_ipv4, __be32* to) {
  const size_t skip = is_ipv4 ? kPrefixBytes : 0;
  std::memcpy(to, end.address.data() + skip, end.address.size() - skip);
}

bool Ask(int fd, const TcpSocket& socket) {
  TcpRequest request = {};
  request.header.nlmsg_len = sizeof(request);
  request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.header.nlmsg_flags = NLM_F_REQUEST;
  const bool is_ipv4 = IsIpv4(socket.local) && IsIpv4(socket.remote);
  request.body.sdiag_family = is_ipv4 ? AF_INET : AF_INET6;
  request.body.sdiag_protocol = IPPROTO_TCP;
  request.body.idiag_ext = 1 << (INET_DIAG_INFO - 1);
  request.body.idiag_states = UINT32_MAX;
  inet_diag_sockid& id = request.body.id;
  id.idiag_sport = htons(socket.local.port);
  id.idiag_dport = htons(socket.remote.port);
  CopyAddress(socket.local, is_ipv4, id.idiag_src);
  CopyAddress(socket.remote, is_ipv4, id.idiag_dst);
  id.idiag_cookie[0] = id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  return send(fd, &request, sizeof(request), 0) == static_cast<ssize_t>(sizeof(request));
}

uint64_t FindReceived(const char* bytes, size_t size, uint64_t inode) {
  const auto* message = reinterpret_cast<const nlmsghdr*>(bytes);
  if (!NLMSG_OK(message, static_cast<unsigned>(size))) return 0;
  if (message->nlmsg_type != SOCK_DIAG_BY_FAMILY) return 0;
  if (message->nlmsg_len < NLMSG_LENGTH(sizeof(inet_diag_msg))) return 0;
  const auto* about = static_cast<const inet_diag_msg*>(NLMSG_DATA(message));
  if (about->idiag_inode != inode) return 0;
  const auto* attribute = reinterpret_cast<const rtattr*>(about + 1);
  auto left = static_cast<int>(message->nlmsg_len - NLMSG_LENGTH(sizeof(*about)));
  for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
    if (attribute->rta_type != INET_DIAG_INFO) continue;
    tcp_info info = {};  // an older kernel fills less of it
    std::memcpy(&info, RTA_DATA(attribute), std::min(sizeof(info), RTA_PAYLOAD(attribute)));
    return info.tcpi_bytes_received;
  }
  return 0;
}

}  // namespace

uint64_t ReadReceivedBytes(const TcpSocket& socket) {
  const UniqueFd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  const timeval patience = {1, 0};
  if (!fd.valid() ||
      setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) != 0 ||
      !Ask(fd.get(), socket)) {
    return 0;
  }
  alignas(nlmsghdr) char answer[8192];
  const ssize_t size = recv(fd.get(), answer, sizeof(answer), 0);
  return size > 0 ? FindReceived(answer, static_cast<size_t>(size), socket.inode) : 0;
}

}  // namespace rollcall
