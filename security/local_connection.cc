// SPDX-License-Identifier: Apache-2.0
#include "security/local_connection.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/server_address.h"
#include "base/user_names.h"
#include "security/loopback_peer.h"

namespace rollcall {
namespace {

constexpr int kStepMs = 5;

std::optional<uid_t> FindUser(const std::string& name) {
  uid_t number = 0;
  if (absl::SimpleAtoi(name, &number)) return number;
  std::vector<char> buffer(16 << 10);
  passwd entry = {};
  passwd* found = nullptr;
  if (getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0) return {};
  return found == nullptr ? std::nullopt : std::optional<uid_t>(found->pw_uid);
}

std::string NameOf(uid_t user) {
  const std::string name = UserName(user);
  return name.empty() ? absl::StrCat("uid ", user) : absl::StrCat(name, " (uid ", user, ")");
}

absl::Status Unreachable(const std::string& address, int error) {
  return absl::UnavailableError(absl::StrCat(address, ": ", strerror(error)));
}

// Somebody listens there, and is too busy to take the connection.
absl::Status Busy(const std::string& address) {
  return absl::DeadlineExceededError(
      absl::StrCat(address, ": the daemon does not accept connections"));
}

absl::Status NotTheDaemon(const std::string& address, uid_t user) {
  return absl::PermissionDeniedError(absl::StrCat(
      "the process that listens on ", address, " belongs to ", NameOf(user),
      ", who is neither you nor root, so nothing was sent to it\n  if it is the daemon:  "
      "--daemon-user=",
      user, "   or TLS, which proves who it is: --tls-ca=FILE"));
}

absl::Status UnknownDaemon(const std::string& address) {
  return absl::PermissionDeniedError(absl::StrCat(
      "this system does not show which process listens on ", address,
      " (another container or user namespace), so the token was not sent\n  if it is the daemon:  "
      "--daemon-user=any   or TLS, which proves who it is: --tls-ca=FILE"));
}

absl::Status Judge(const LoopbackPeer& peer, const std::string& address, const DaemonUser& user,
                   bool has_secret) {
  switch (peer.state) {
    case LoopbackPeer::State::kKnown:
      return user.Accepts(peer.user) ? absl::OkStatus() : NotTheDaemon(address, peer.user);
    case LoopbackPeer::State::kUnknown:
      return has_secret ? UnknownDaemon(address) : absl::OkStatus();
    case LoopbackPeer::State::kNobody:
      break;
  }
  return Busy(address);
}

// The user that called listen().
LoopbackPeer UnixPeer(int fd) {
  ucred credentials = {};
  socklen_t size = sizeof(credentials);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return {};
  return KnownUnlessForeign(credentials.uid);
}

std::optional<PeerAddress> ToAddress(const sockaddr_storage& address) {
  PeerAddress result;
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    memcpy(result.bytes.data(), &v4.sin_addr, sizeof(v4.sin_addr));
    result.port = ntohs(v4.sin_port);
    return result;
  }
  if (address.ss_family != AF_INET6) return std::nullopt;
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  result.family = PeerAddress::Family::kIpv6;
  memcpy(result.bytes.data(), &v6.sin6_addr, sizeof(v6.sin6_addr));
  result.port = ntohs(v6.sin6_port);
  return result;
}

// Before the daemon has accepted the connection, it belongs to no process; after the daemon has
// closed it, it never will.
LoopbackPeer TcpPeer(int fd, int patience_ms) {
  sockaddr_storage own = {}, other = {};
  socklen_t own_size = sizeof(own), other_size = sizeof(other);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_size) != 0 ||
      getpeername(fd, reinterpret_cast<sockaddr*>(&other), &other_size) != 0) {
    return {LoopbackPeer::State::kNobody, 0};
  }
  const std::optional<PeerAddress> here = ToAddress(own), there = ToAddress(other);
  if (!here.has_value() || !there.has_value()) return {};
  LoopbackPeer peer = FindLoopbackPeer(*there, *here);
  for (int waited = 0; peer.state == LoopbackPeer::State::kNobody && waited < patience_ms;
       waited += kStepMs) {
    pollfd end = {fd, POLLRDHUP, 0};
    if (poll(&end, 1, kStepMs) > 0) break;
    peer = FindLoopbackPeer(*there, *here);
  }
  return peer;
}

// A connected socket, or an error.
absl::StatusOr<UniqueFd> Dial(const sockaddr* address, socklen_t size, const std::string& name,
                              int patience_ms) {
  UniqueFd connection(socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int fd = connection.get();
  if (fd < 0) return Unreachable(name, errno);
  int error = connect(fd, address, size) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    pollfd wait = {fd, POLLOUT, 0};
    socklen_t length = sizeof(error);
    if (poll(&wait, 1, patience_ms) != 1)
      error = ETIMEDOUT;
    else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
      error = errno;
  }
  // Its queue is full.
  if (error == ETIMEDOUT || (error == EAGAIN && address->sa_family == AF_UNIX)) return Busy(name);
  if (error != 0) return Unreachable(name, error);
  return connection;
}

absl::StatusOr<UniqueFd> ConnectToUnix(const std::string& path, const std::string& name,
                                       const DaemonUser& user, bool has_secret, int patience_ms) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return Unreachable(name, ENAMETOOLONG);
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  absl::StatusOr<UniqueFd> fd =
      Dial(reinterpret_cast<sockaddr*>(&address), sizeof(address), name, patience_ms);
  if (!fd.ok() || user.is_anybody()) return fd;
  const absl::Status status = Judge(UnixPeer(fd->get()), name, user, has_secret);
  if (!status.ok()) return status;
  return fd;
}

absl::StatusOr<UniqueFd> ConnectToTcp(const addrinfo& one, const std::string& name,
                                      const DaemonUser& user, bool has_secret, int patience_ms) {
  absl::StatusOr<UniqueFd> fd = Dial(one.ai_addr, one.ai_addrlen, name, patience_ms);
  if (!fd.ok()) return fd;
  const int yes = 1;
  setsockopt(fd->get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  if (user.is_anybody()) return fd;
  const absl::Status status = Judge(TcpPeer(fd->get(), patience_ms), name, user, has_secret);
  if (!status.ok()) return status;
  return fd;
}

}  // namespace

absl::StatusOr<DaemonUser> DaemonUser::Parse(const std::string& flag) {
  DaemonUser user;
  user.is_anybody_ = flag == "any";
  if (flag.empty() || user.is_anybody_) return user;
  user.only_ = FindUser(flag);
  if (user.only_.has_value()) return user;
  return absl::InvalidArgumentError(
      absl::StrCat("--daemon-user=", flag, ": this host has no such user; NAME, number or any"));
}

bool DaemonUser::Accepts(uid_t user) const {
  if (is_anybody_) return true;
  return only_.has_value() ? user == *only_ : user == geteuid() || user == 0;
}

absl::StatusOr<UniqueFd> ConnectOnThisHost(const std::string& address, const DaemonUser& user,
                                           bool has_secret, int patience_ms) {
  const ServerAddress server = SplitServerAddress(address);
  if (server.is_unix) {
    return ConnectToUnix(server.host, address, user, has_secret, patience_ms);
  }
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(server.host.c_str(), server.port.c_str(), &hints, &found);
  if (failed != 0) return absl::UnavailableError(absl::StrCat(address, ": ", gai_strerror(failed)));
  const absl::Cleanup free_found = [found] { freeaddrinfo(found); };
  absl::Status status = Unreachable(address, ECONNREFUSED);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    absl::StatusOr<UniqueFd> fd = ConnectToTcp(*one, address, user, has_secret, patience_ms);
    if (fd.ok()) return fd;
    // That somebody else listens, or a busy daemon, is more useful to report than that no process
    // does at the next address.
    if (absl::IsUnavailable(status)) status = fd.status();
  }
  return status;
}

}  // namespace rollcall
