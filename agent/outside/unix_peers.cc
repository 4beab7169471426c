// SPDX-License-Identifier: Apache-2.0
#include "agent/outside/unix_peers.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "base/durations.h"
#include "base/monotonic_clock.h"
#include "base/unique_fd.h"

namespace rollcall {
namespace {

constexpr size_t kAnswerBytes = 64 << 10;
constexpr int kMostAnswers = 1024;

struct DumpRequest {
  nlmsghdr header;
  unix_diag_req body;
};

bool AskForAllSockets(int fd) {
  DumpRequest request = {};
  request.header.nlmsg_len = sizeof(request);
  request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.body.sdiag_family = AF_UNIX;
  request.body.udiag_states = UINT32_MAX;
  request.body.udiag_show = UDIAG_SHOW_PEER | UDIAG_SHOW_ICONS;
  return send(fd, &request, sizeof(request), 0) == static_cast<ssize_t>(sizeof(request));
}

// Adds what the kernel reports of one socket.
void AddSocket(const nlmsghdr* message, UnixPeers* peers) {
  const auto* socket = static_cast<const unix_diag_msg*>(NLMSG_DATA(message));
  const auto* attribute = reinterpret_cast<const rtattr*>(socket + 1);
  auto left = static_cast<int>(message->nlmsg_len - NLMSG_LENGTH(sizeof(*socket)));
  for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
    std::vector<uint32_t> inodes(RTA_PAYLOAD(attribute) / sizeof(uint32_t));
    if (inodes.empty()) continue;
    std::memcpy(inodes.data(), RTA_DATA(attribute), inodes.size() * sizeof(uint32_t));
    const bool has_peer = attribute->rta_type == UNIX_DIAG_PEER && inodes[0] != 0;
    if (has_peer) (*peers)[socket->udiag_ino] = inodes[0];
    if (attribute->rta_type != UNIX_DIAG_ICONS) continue;
    for (const uint32_t waiting : inodes) peers->emplace(waiting, socket->udiag_ino);
  }
}

// False if it was the last part of the answer.
bool AddAnswer(const char* bytes, size_t size, UnixPeers* peers) {
  const auto* message = reinterpret_cast<const nlmsghdr*>(bytes);
  auto left = static_cast<unsigned>(size);
  for (; NLMSG_OK(message, left); message = NLMSG_NEXT(message, left)) {
    if (message->nlmsg_type == NLMSG_DONE || message->nlmsg_type == NLMSG_ERROR) return false;
    const bool is_whole = message->nlmsg_len >= NLMSG_LENGTH(sizeof(unix_diag_msg));
    if (message->nlmsg_type == SOCK_DIAG_BY_FAMILY && is_whole) AddSocket(message, peers);
  }
  return true;
}

// Waits for the next part of the answer until the deadline at most.
ssize_t Receive(int fd, int64_t deadline_ns, std::vector<char>* answer) {
  const int64_t left_ns = std::min(deadline_ns - MonotonicNs(), kSecond);
  pollfd ready = {fd, POLLIN, 0};
  const auto left_ms = static_cast<int>(left_ns * 1000 / kSecond);
  if (left_ms <= 0 || poll(&ready, 1, left_ms) != 1) return 0;
  return recv(fd, answer->data(), answer->size(), MSG_DONTWAIT);
}

}  // namespace

UnixPeers ReadUnixPeers(int64_t deadline_ns) {
  UnixPeers peers;
  const UniqueFd fd(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!fd.valid() || !AskForAllSockets(fd.get())) return peers;
  std::vector<char> answer(kAnswerBytes);
  for (int i = 0; i < kMostAnswers; ++i) {
    const ssize_t size = Receive(fd.get(), deadline_ns, &answer);
    if (size <= 0 || !AddAnswer(answer.data(), static_cast<size_t>(size), &peers)) break;
  }
  return peers;
}

}  // namespace rollcall
