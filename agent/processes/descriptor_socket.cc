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

namespace rollcall {
namespace {

// The folder and the file's name in it.
std::pair<std::string, std::string> SplitPath(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {path.substr(0, slash + 1), path.substr(slash + 1)};
}

// A socket's name has 107 characters at most. A longer path is named by its open folder, which
// `*folder` keeps open as long as the address is used. False: that is not possible either.
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

bool SomebodyListens(const sockaddr_un& address) {
  const UniqueFd probe(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

// The first descriptor and the sender; whatever else came with it is closed.
PassedDescriptor Unpack(msghdr* message, char what) {
  PassedDescriptor passed;
  passed.what = what;
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
    return absl::InvalidArgumentError(absl::StrCat("cannot use ", SplitPath(path).first,
                                                   " for a socket: ", strerror(errno)));
  }
  UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int yes = 1;
  if (!fd.valid() || setsockopt(fd.get(), SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) != 0) {
    return absl::UnavailableError(absl::StrCat("no socket: ", strerror(errno)));
  }
  if (SomebodyListens(address)) {
    return absl::AlreadyExistsError(absl::StrCat(path, ": another agent listens there"));
  }
  unlink(path.c_str());
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", path, ": ", strerror(errno)));
  }
  // An agent of root serves the processes of another user.
  struct stat directory;
  if (stat(SplitPath(path).first.c_str(), &directory) == 0 &&
      directory.st_uid != geteuid() &&
      chown(path.c_str(), directory.st_uid, directory.st_gid) != 0) {
    return absl::UnavailableError(absl::StrCat(path, ": ", strerror(errno)));
  }
  return std::unique_ptr<DescriptorSocket>(new DescriptorSocket(path, fd.Release()));
}

DescriptorSocket::~DescriptorSocket() { unlink(path_.c_str()); }

std::optional<PassedDescriptor> DescriptorSocket::Receive(int64_t timeout_ns) {
  pollfd wanted = {fd_.get(), POLLIN, 0};
  const timespec timeout = {timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
  if (ppoll(&wanted, 1, &timeout, nullptr) <= 0) return std::nullopt;
  char what = 0;
  iovec text = {&what, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred)) + CMSG_SPACE(16 * sizeof(int))];
  msghdr message = {};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  if (recvmsg(fd_.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) < 0) return std::nullopt;
  PassedDescriptor passed = Unpack(&message, what);
  if (!passed.fd.valid() || passed.pid <= 0) return std::nullopt;
  return passed;
}

}  // namespace rollcall
