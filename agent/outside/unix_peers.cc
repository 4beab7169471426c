// SPDX-License-Identifier: Apache-2.0
#include "agent/outside/unix_peers.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cstddef>
#include <cstring>
#include <vector>

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

// What one socket says of the one that is looked for.
class Search {
 public:
  explicit Search(uint32_t inode) : inode_(inode) {}

  void Look(const nlmsghdr* message) {
    const auto* socket = static_cast<const unix_diag_msg*>(NLMSG_DATA(message));
    const auto* attribute = reinterpret_cast<const rtattr*>(socket + 1);
    auto left = static_cast<int>(message->nlmsg_len - NLMSG_LENGTH(sizeof(*socket)));
    for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
      std::vector<uint32_t> inodes(RTA_PAYLOAD(attribute) / sizeof(uint32_t));
      if (inodes.empty()) continue;
      std::memcpy(inodes.data(), RTA_DATA(attribute), inodes.size() * sizeof(uint32_t));
      if (attribute->rta_type == UNIX_DIAG_PEER && socket->udiag_ino == inode_) peer_ = inodes[0];
      if (attribute->rta_type != UNIX_DIAG_ICONS) continue;
      for (const uint32_t waiting : inodes) {
        if (waiting == inode_) listener_ = socket->udiag_ino;
      }
    }
  }

  uint64_t Found() const { return peer_ != 0 ? peer_ : listener_; }

 private:
  const uint32_t inode_;
  uint32_t peer_ = 0, listener_ = 0;
};

// False: it was the last part of the answer.
bool LookAtAnswer(const char* bytes, size_t size, Search* search) {
  const auto* message = reinterpret_cast<const nlmsghdr*>(bytes);
  auto left = static_cast<unsigned>(size);
  for (; NLMSG_OK(message, left); message = NLMSG_NEXT(message, left)) {
    if (message->nlmsg_type == NLMSG_DONE || message->nlmsg_type == NLMSG_ERROR) return false;
    const bool is_whole = message->nlmsg_len >= NLMSG_LENGTH(sizeof(unix_diag_msg));
    if (message->nlmsg_type == SOCK_DIAG_BY_FAMILY && is_whole) search->Look(message);
  }
  return true;
}

}  // namespace

uint64_t FindUnixPeer(uint64_t inode) {
  if (inode == 0 || inode > UINT32_MAX) return 0;
  const UniqueFd fd(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  const timeval patience = {1, 0};
  if (!fd.valid() ||
      setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) != 0 ||
      !AskForAllSockets(fd.get())) {
    return 0;
  }
  Search search(static_cast<uint32_t>(inode));
  std::vector<char> answer(kAnswerBytes);
  for (int i = 0; i < kMostAnswers; ++i) {
    const ssize_t size = recv(fd.get(), answer.data(), answer.size(), 0);
    if (size <= 0 || !LookAtAnswer(answer.data(), static_cast<size_t>(size), &search)) break;
  }
  return search.Found();
}

}  // namespace rollcall
