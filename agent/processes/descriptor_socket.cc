// SPDX-License-Identifier: Apache-2.0
#include "agent/processes/descriptor_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/durations.h"

namespace rollcall {
namespace {

// The path in a socket address has at most 107 characters, and leads where its folders lead at that
// moment. The way through the open folder is short, and leads into that very folder.
bool SetAddress(const UniqueFd& folder, const std::string& name, sockaddr_un* address) {
  std::memset(address, 0, sizeof(*address));
  address->sun_family = AF_UNIX;
  const std::string path = absl::StrCat("/proc/self/fd/", folder.get(), "/", name);
  if (path.size() >= sizeof(address->sun_path)) return false;
  std::memcpy(address->sun_path, path.data(), path.size());
  return true;
}

bool HasListener(const sockaddr_un& address) {
  const UniqueFd probe(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

absl::Status FromErrno(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", strerror(errno)));
}

// Makes room for the name: removes the socket of a program that has ended.
absl::Status RemoveDeadSocket(const UniqueFd& folder, const std::string& name,
                              const sockaddr_un& address) {
  struct stat about;
  if (fstatat(folder.get(), name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0) {
    return errno == ENOENT ? absl::OkStatus() : FromErrno(name);
  }
  if (!S_ISSOCK(about.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(name, " is not a socket: remove it"));
  }
  if (HasListener(address)) {
    return absl::AlreadyExistsError(absl::StrCat(name, ": another agent listens there"));
  }
  return unlinkat(folder.get(), name.c_str(), 0) == 0 ? absl::OkStatus() : FromErrno(name);
}

// Returns the first descriptor and the sender. Closes all other descriptors of the message.
PassedDescriptor Unpack(msghdr* message, char kind) {
  PassedDescriptor passed;
  passed.kind = kind;
  for (cmsghdr* part = CMSG_FIRSTHDR(message); part != nullptr; part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level != SOL_SOCKET) continue;
    if (part->cmsg_type == SCM_CREDENTIALS) {
      ucred sender;
      std::memcpy(&sender, CMSG_DATA(part), sizeof(sender));
      passed.pid = sender.pid;
    }
    if (part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(fd));
      UniqueFd owned(fd);
      if (!passed.fd.valid()) passed.fd = std::move(owned);
    }
  }
  return passed;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DescriptorSocket>> DescriptorSocket::Listen(
    UniqueFd folder, const std::string& name) {
  sockaddr_un address;
  if (!SetAddress(folder, name, &address)) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": too long a name for a socket"));
  }
  UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int yes = 1;
  if (!fd.valid() || setsockopt(fd.get(), SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) != 0) {
    return FromErrno("no socket");
  }
  absl::Status status = RemoveDeadSocket(folder, name, address);
  if (!status.ok()) return status;
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return FromErrno(absl::StrCat("cannot listen on ", name));
  }
  return std::unique_ptr<DescriptorSocket>(
      new DescriptorSocket(std::move(folder), name, std::move(fd)));
}

DescriptorSocket::~DescriptorSocket() { unlinkat(folder_.get(), name_.c_str(), 0); }

std::optional<PassedDescriptor> DescriptorSocket::Receive(int64_t timeout_ns) {
  pollfd wanted = {fd_.get(), POLLIN, 0};
  const timespec timeout = {timeout_ns / kSecond, timeout_ns % kSecond};
  if (ppoll(&wanted, 1, &timeout, nullptr) <= 0) return std::nullopt;
  char kind = 0;
  iovec text = {&kind, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred)) + CMSG_SPACE(16 * sizeof(int))];
  msghdr message = {};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  if (recvmsg(fd_.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) < 0) return std::nullopt;
  PassedDescriptor passed = Unpack(&message, kind);
  if (!passed.fd.valid() || passed.pid <= 0) return std::nullopt;
  return passed;
}

}  // namespace rollcall
