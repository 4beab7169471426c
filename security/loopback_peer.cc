// SPDX-License-Identifier: Apache-2.0
#include "security/loopback_peer.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <memory>

#include "base/unique_fd.h"

namespace rollcall {
namespace {

constexpr uint32_t kSequence = 1;

struct Question {
  nlmsghdr header;
  inet_diag_req_v2 request;
};

// The kernel finds an established socket by both of its ends only: `from` is the caller's.
Question MakeQuestion(const PeerAddress& from, const PeerAddress& to) {
  Question question = {};
  question.header.nlmsg_len = sizeof(question);
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST;
  question.header.nlmsg_seq = kSequence;
  inet_diag_req_v2& request = question.request;
  request.sdiag_family = from.family == PeerAddress::Family::kIpv4 ? AF_INET : AF_INET6;
  request.sdiag_protocol = IPPROTO_TCP;
  request.idiag_states = 1u << TCP_ESTABLISHED;
  request.id.idiag_sport = htons(from.port);
  request.id.idiag_dport = htons(to.port);
  memcpy(request.id.idiag_src, from.bytes.data(), from.bytes.size());
  memcpy(request.id.idiag_dst, to.bytes.data(), to.bytes.size());
  request.id.idiag_cookie[0] = INET_DIAG_NOCOOKIE;
  request.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  return question;
}

bool SameEnds(const inet_diag_sockid& a, const inet_diag_sockid& b) {
  return a.idiag_sport == b.idiag_sport && a.idiag_dport == b.idiag_dport;
}

LoopbackPeer ReadAnswer(const char* bytes, size_t size, const Question& question) {
  nlmsghdr header;
  inet_diag_msg answer;
  if (size < sizeof(header)) return {};
  memcpy(&header, bytes, sizeof(header));
  if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY || header.nlmsg_seq != kSequence ||
      header.nlmsg_len > size || header.nlmsg_len < NLMSG_LENGTH(sizeof(answer))) {
    return {};
  }
  memcpy(&answer, bytes + NLMSG_HDRLEN, sizeof(answer));
  // Of a socket that its process has closed, the kernel reports uid 0 and inode 0. It reads the uid
  // first, so an inode shows that the uid is that of a process.
  const bool is_open = answer.idiag_state == TCP_ESTABLISHED && answer.idiag_inode != 0;
  if (!SameEnds(answer.id, question.request.id)) return {};
  if (!is_open) return {LoopbackPeer::State::kNobody, 0};
  return {LoopbackPeer::State::kKnown, answer.idiag_uid};
}

LoopbackPeer Ask(const Question& question) {
  const UniqueFd socket(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  const int fd = socket.get();
  if (fd < 0) return {};
  const timeval limit = {1, 0};  // the kernel answers within the call to send()
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  sockaddr_nl kernel = {};
  kernel.nl_family = AF_NETLINK;
  if (sendto(fd, &question, sizeof(question), 0, reinterpret_cast<const sockaddr*>(&kernel),
             sizeof(kernel)) != static_cast<ssize_t>(sizeof(question))) {
    return {};
  }
  char bytes[8192];
  sockaddr_nl sender = {};
  socklen_t sender_size = sizeof(sender);
  const ssize_t got =
      recvfrom(fd, bytes, sizeof(bytes), 0, reinterpret_cast<sockaddr*>(&sender), &sender_size);
  if (got <= 0 || sender.nl_pid != 0) return {};
  return ReadAnswer(bytes, static_cast<size_t>(got), question);
}

// Whether each user has a number here, as outside of containers.
bool HasAllUsers() {
  const std::unique_ptr<FILE, int (*)(FILE*)> map(fopen("/proc/self/uid_map", "re"), &fclose);
  unsigned inside = 1, outside = 1, count = 0;
  return map != nullptr && fscanf(map.get(), "%u %u %u", &inside, &outside, &count) == 3 &&
         inside == 0 && count == UINT32_MAX;
}

// What the kernel reports instead of a user that has no number in this user namespace.
bool IsOverflowUser(uid_t user) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(fopen("/proc/sys/kernel/overflowuid", "re"),
                                                   &fclose);
  unsigned overflow = 65534;
  if (file != nullptr && fscanf(file.get(), "%u", &overflow) != 1) overflow = 65534;
  return user == overflow;
}

}  // namespace

LoopbackPeer FindLoopbackPeer(const PeerAddress& there, const PeerAddress& here) {
  if (!there.IsLoopback()) return {};
  const LoopbackPeer found = Ask(MakeQuestion(there, here));
  return found.state == LoopbackPeer::State::kKnown ? KnownUnlessForeign(found.user) : found;
}

std::optional<uid_t> LoopbackPeerUser(const PeerAddress& there, const PeerAddress& here) {
  const LoopbackPeer found = FindLoopbackPeer(there, here);
  if (found.state != LoopbackPeer::State::kKnown) return std::nullopt;
  return found.user;
}

LoopbackPeer KnownUnlessForeign(uid_t user) {
  if (IsOverflowUser(user) && !HasAllUsers()) return {};
  return {LoopbackPeer::State::kKnown, user};
}

}  // namespace rollcall
