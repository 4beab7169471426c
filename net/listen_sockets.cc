// SPDX-License-Identifier: Apache-2.0
#include "net/listen_sockets.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/server_address.h"
#include "net/http_listener.h"

namespace rollcall {
namespace {

absl::Status Unusable(const std::string& why) { return absl::UnavailableError(why); }

uint16_t* PortOf(sockaddr_storage* address) {
  return address->ss_family == AF_INET6 ? &reinterpret_cast<sockaddr_in6*>(address)->sin6_port
                                        : &reinterpret_cast<sockaddr_in*>(address)->sin_port;
}

int BoundPort(int fd) {
  sockaddr_storage bound = {};
  socklen_t size = sizeof(bound);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size) != 0) return 0;
  return ntohs(*PortOf(&bound));
}

absl::Status WhyNot(int error) {
  if (error == EADDRINUSE) return Unusable("the address is in use");
  if (error == EADDRNOTAVAIL) return Unusable("the address belongs to another machine");
  return Unusable(strerror(error));
}

bool IsEverywhere(const std::string& host) { return host == "0.0.0.0" || host == "::"; }

// A socket that accepts a connection, or whose queue of connections is full, has a living owner.
bool HasListener(const sockaddr_un& address) {
  const UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return true;
  const int result =
      connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  return result == 0 || (errno != ECONNREFUSED && errno != ENOENT);
}

}  // namespace

ListenSockets& ListenSockets::operator=(ListenSockets&& other) noexcept {
  std::swap(fds_, other.fds_);
  std::swap(port_, other.port_);
  std::swap(path_, other.path_);
  std::swap(device_, other.device_);
  std::swap(inode_, other.inode_);
  return *this;
}

ListenSockets::~ListenSockets() {
  fds_.clear();
  struct stat now = {};
  const bool is_ours = !path_.empty() && lstat(path_.c_str(), &now) == 0 && now.st_dev == device_ &&
                       now.st_ino == inode_;
  if (is_ours) unlink(path_.c_str());
}

std::vector<UniqueFd> ListenSockets::Release() { return std::exchange(fds_, {}); }

absl::StatusOr<ListenSockets> ListenSockets::Open(const std::string& address) {
  const ServerAddress server = SplitServerAddress(address);
  ListenSockets sockets;
  absl::Status status;
  if (server.is_unix) {
    status = sockets.OpenUnix(server.host);
  } else {
    uint32_t port = 0;
    if (!absl::SimpleAtoi(server.port, &port) || port > 65535) {
      return absl::InvalidArgumentError(absl::StrCat("cannot listen on ", address, ": no port"));
    }
    status = IsEverywhere(server.host)
                 ? sockets.OpenEverywhere(static_cast<uint16_t>(port))
                 : sockets.OpenAllOf(server.host, static_cast<uint16_t>(port));
  }
  if (!status.ok()) {
    return Unusable(absl::StrCat("cannot listen on ", address, ": ", std::string(status.message()),
                                 "\n  another one?  --listen=HOST:PORT   (port 0: any free one)"));
  }
  return sockets;
}

int ListenSockets::Bind(const sockaddr* address, socklen_t size) {
  UniqueFd socket(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int fd = socket.get();
  if (fd < 0) return errno;
  // A restarted daemon may bind the port while connections of the previous one close. Two living
  // ones may not share it.
  const int yes = 1;
  if (address->sa_family != AF_UNIX) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (address->sa_family == AF_INET6) {
    const int no = 0;  // [::] serves IPv4, too
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
  }
  // The file of a unix socket gets the mode of the socket. By its path, another file could get it.
  if (address->sa_family == AF_UNIX && fchmod(fd, 0600) != 0) return errno;
  // Linux lets two processes bind one port until one of them listens. A unix socket listens when it
  // is its owner's alone.
  if (bind(fd, address, size) != 0 ||
      (address->sa_family != AF_UNIX && listen(fd, kListenBacklog) != 0)) {
    return errno;
  }
  fds_.push_back(std::move(socket));
  if (address->sa_family != AF_UNIX) port_ = BoundPort(fd);
  return 0;
}

absl::Status ListenSockets::OpenUnix(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return Unusable(absl::StrCat("the path of a unix socket has 1 to ",
                                 sizeof(address.sun_path) - 1, " bytes"));
  }
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  struct stat file = {};
  if (lstat(path.c_str(), &file) == 0) {
    if (!S_ISSOCK(file.st_mode)) return Unusable("a file that is not a socket is already there");
    if (HasListener(address)) {
      return Unusable("a process listens there already. Only one daemon may use a socket");
    }
    unlink(path.c_str());
  }
  const int error = Bind(reinterpret_cast<sockaddr*>(&address), sizeof(address));
  if (error != 0) return WhyNot(error);
  if (lstat(path.c_str(), &file) != 0 || listen(fds_.back().get(), kListenBacklog) != 0) {
    return Unusable(strerror(errno));
  }
  path_ = path;
  device_ = file.st_dev;
  inode_ = file.st_ino;
  return absl::OkStatus();
}

// One socket for both families where the host has IPv6, else one for IPv4.
absl::Status ListenSockets::OpenEverywhere(uint16_t port) {
  sockaddr_in6 v6 = {};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  int error = Bind(reinterpret_cast<sockaddr*>(&v6), sizeof(v6));
  if (error == EAFNOSUPPORT || error == EADDRNOTAVAIL) {
    sockaddr_in v4 = {};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    error = Bind(reinterpret_cast<sockaddr*>(&v4), sizeof(v4));
  }
  return error == 0 ? absl::OkStatus() : WhyNot(error);
}

absl::Status ListenSockets::OpenAllOf(const std::string& host, uint16_t port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (failed != 0) return Unusable(gai_strerror(failed));
  const absl::Cleanup free_found = [found] { freeaddrinfo(found); };
  int missing = EADDRNOTAVAIL;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    sockaddr_storage address = {};
    memcpy(&address, one->ai_addr, one->ai_addrlen);
    // All addresses get the port that the first one got.
    *PortOf(&address) = htons(port_ == 0 ? port : static_cast<uint16_t>(port_));
    const int error = Bind(reinterpret_cast<sockaddr*>(&address), one->ai_addrlen);
    // Somebody else who has one address of the name would get a part of the clients.
    if (error == EADDRINUSE) return WhyNot(error);
    if (error != 0) missing = error;
  }
  return fds_.empty() ? WhyNot(missing) : absl::OkStatus();
}

}  // namespace rollcall
