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
#include "base/durations.h"

namespace rollcall {
namespace {

// Splits a path into the folder and the file name.
std::pair<std::string, std::string> SplitPath(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {path.substr(0, slash + 1), path.substr(slash + 1)};
}

// The path in a socket address has at most 107 characters. For a longer path the address goes
// through /proc/self/fd and the open folder; `*folder` must stay open while the address is in use.
// False: the folder cannot be opened, or even that path is too long.
bool SetAddress(const std::string& path, UniqueFd* folder, sockaddr_un* address) {
  std::memset(address, 0, sizeof(*address));
  address->sun_family = AF_UNIX;
  std::string name = path;
  if (name.size() >= sizeof(address->sun_path)) {
    const auto [directory, file] = SplitPath(path);
    *folder = UniqueFd(open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!folder->valid()) return false;
    name = absl::StrCat("/proc/self/fd/", folder->get(), "/", file);
  }
  if (name.size() >= sizeof(address->sun_path)) return false;
  std::memcpy(address->sun_path, name.data(), name.size());
  return true;
}

bool HasListener(const sockaddr_un& address) {
  const UniqueFd probe(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
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
    const std::string& path) {
  sockaddr_un address;
  UniqueFd folder;
  if (!SetAddress(path, &folder, &address)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot use ", SplitPath(path).first, " for a socket: ", strerror(errno)));
  }
  UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int yes = 1;
  if (!fd.valid() || setsockopt(fd.get(), SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) != 0) {
    return absl::UnavailableError(absl::StrCat("no socket: ", strerror(errno)));
  }
  if (HasListener(address)) {
    return absl::AlreadyExistsError(absl::StrCat(path, ": another agent listens there"));
  }
  unlink(path.c_str());
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", path, ": ", strerror(errno)));
  }
  // An agent that runs as root serves processes of another user: give them the socket.
  struct stat directory;
  if (stat(SplitPath(path).first.c_str(), &directory) == 0 && directory.st_uid != geteuid() &&
      chown(path.c_str(), directory.st_uid, directory.st_gid) != 0) {
    return absl::UnavailableError(absl::StrCat(path, ": ", strerror(errno)));
  }
  return std::unique_ptr<DescriptorSocket>(new DescriptorSocket(path, fd.Release()));
}

DescriptorSocket::~DescriptorSocket() { unlink(path_.c_str()); }

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
