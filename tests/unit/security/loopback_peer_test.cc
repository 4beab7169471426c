// SPDX-License-Identifier: Apache-2.0
// Real connections over loopback, and processes of other users at their other end.
#include "security/loopback_peer.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

namespace rollcall {
namespace {

constexpr uid_t kNobody = 65534;

struct Endpoint {
  sockaddr_storage storage = {};
  socklen_t size = 0;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  uint16_t port() const {
    return ntohs(storage.ss_family == AF_INET
                     ? reinterpret_cast<const sockaddr_in*>(&storage)->sin_port
                     : reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port);
  }
};

Endpoint MakeEndpoint(const std::string& host, uint16_t port) {
  Endpoint end;
  if (host.find(':') == std::string::npos) {
    auto* v4 = reinterpret_cast<sockaddr_in*>(&end.storage);
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    inet_pton(AF_INET, host.c_str(), &v4->sin_addr);
    end.size = sizeof(*v4);
  } else {
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&end.storage);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr);
    end.size = sizeof(*v6);
  }
  return end;
}

// A server, and what it knows of the one client that it has accepted.
class Server {
 public:
  explicit Server(const std::string& host) {
    Endpoint end = MakeEndpoint(host, 0);
    listener_ = socket(end.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(bind(listener_, end.get(), end.size), 0) << strerror(errno);
    EXPECT_EQ(listen(listener_, 1), 0);
    getsockname(listener_, end.get(), &end.size);
    port_ = end.port();
  }
  ~Server() {
    if (connection_ >= 0) close(connection_);
    for (const int fd : former_) close(fd);
    close(listener_);
  }

  uint16_t port() const { return port_; }
  int connection() const { return connection_; }
  int listener() const { return listener_; }
  // The own address of the accepted connection.
  PeerAddress here() const { return here_; }

  // The accepted client's address.
  PeerAddress Accept() {
    Endpoint there, here;
    there.size = here.size = sizeof(there.storage);
    if (connection_ >= 0) former_.push_back(connection_);
    connection_ = accept(listener_, there.get(), &there.size);
    EXPECT_GE(connection_, 0);
    EXPECT_EQ(getsockname(connection_, here.get(), &here.size), 0);
    here_ = Parse(here);
    return Parse(there);
  }

 private:
  // By its text as gRPC writes it.
  static PeerAddress Parse(const Endpoint& end) {
    char text[INET6_ADDRSTRLEN] = "";
    const bool is_v4 = end.storage.ss_family == AF_INET;
    inet_ntop(end.storage.ss_family,
              is_v4 ? static_cast<const void*>(
                          &reinterpret_cast<const sockaddr_in*>(&end.storage)->sin_addr)
                    : &reinterpret_cast<const sockaddr_in6*>(&end.storage)->sin6_addr,
              text, sizeof(text));
    const std::string port = std::to_string(end.port());
    const auto peer = ParsePeer(is_v4 ? "ipv4:" + std::string(text) + ":" + port
                                      : "ipv6:[" + std::string(text) + "]:" + port);
    EXPECT_TRUE(peer.has_value()) << text;
    return peer.value_or(PeerAddress());
  }

  int listener_ = -1;
  int connection_ = -1;
  std::vector<int> former_;  // connections
  PeerAddress here_;
  uint16_t port_ = 0;
};

int Connect(const std::string& host, uint16_t port, const std::string& own = "") {
  Endpoint end = MakeEndpoint(host, port);
  const int fd = socket(end.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (!own.empty()) {
    Endpoint own_end = MakeEndpoint(own, 0);
    EXPECT_EQ(bind(fd, own_end.get(), own_end.size), 0) << strerror(errno);
  }
  EXPECT_EQ(connect(fd, end.get(), end.size), 0) << strerror(errno);
  return fd;
}

// Returns without a connection where the kernel cannot.
void ConnectFromPort(const std::string& host, uint16_t port, uint16_t own_port) {
  constexpr int kIpLocalPortRange = 51;  // IP_LOCAL_PORT_RANGE of Linux 6.3
  Endpoint end = MakeEndpoint(host, port), own = MakeEndpoint("127.0.0.1", 0);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const uint32_t range = static_cast<uint32_t>(own_port) << 16 | own_port;
  const int later = 1;
  setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &later, sizeof(later));
  if (setsockopt(fd, IPPROTO_IP, kIpLocalPortRange, &range, sizeof(range)) != 0 ||
      bind(fd, own.get(), own.size) != 0) {
    close(fd);
    return;
  }
  if (connect(fd, end.get(), end.size) != 0) close(fd);
}

// A child that does `work` and then waits until the test lets it end.
template <typename Work>
class Child {
 public:
  explicit Child(Work work) {
    EXPECT_EQ(pipe(hold_), 0);
    pid_ = fork();
    if (pid_ != 0) {
      close(hold_[0]);
      return;
    }
    close(hold_[1]);
    work();
    char byte;
    while (read(hold_[0], &byte, 1) > 0) {
    }
    _exit(0);
  }
  ~Child() {
    close(hold_[1]);
    waitpid(pid_, nullptr, 0);
  }

 private:
  int hold_[2];
  pid_t pid_;
};

void BecomeNobody() {
  if (setresuid(kNobody, kNobody, kNobody) != 0) _exit(1);
}

class LoopbackPeerTest : public testing::TestWithParam<const char*> {};

TEST_P(LoopbackPeerTest, TheUserOfThisProcessIsKnown) {
  Server server(GetParam());
  const int client = Connect(GetParam(), server.port());
  const PeerAddress peer = server.Accept();
  EXPECT_EQ(LoopbackPeerUser(peer, server.here()), geteuid());
  close(client);
}

TEST_P(LoopbackPeerTest, AnotherUserIsKnownAsSuch) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  Server server(GetParam());
  const Child child([&server] {
    BecomeNobody();
    Connect(GetParam(), server.port());
  });
  const PeerAddress peer = server.Accept();
  EXPECT_EQ(LoopbackPeerUser(peer, server.here()), kNobody);
}

// The kernel says uid 0 of a socket that no process holds any more.
TEST_P(LoopbackPeerTest, AClosedConnectionHasNoOwner) {
  Server server(GetParam());
  const int client = Connect(GetParam(), server.port());
  const PeerAddress peer = server.Accept();
  ASSERT_EQ(LoopbackPeerUser(peer, server.here()), geteuid());
  close(client);  // FIN_WAIT_2 as long as the server's end is open
  EXPECT_EQ(LoopbackPeerUser(peer, server.here()), std::nullopt);
  shutdown(server.connection(), SHUT_WR);  // TIME_WAIT
  EXPECT_EQ(LoopbackPeerUser(peer, server.here()), std::nullopt);
}

TEST_P(LoopbackPeerTest, AHalfClosedConnectionHasNoOwner) {
  Server server(GetParam());
  const int client = Connect(GetParam(), server.port());
  const PeerAddress peer = server.Accept();
  shutdown(client, SHUT_WR);
  EXPECT_EQ(LoopbackPeerUser(peer, server.here()), std::nullopt);
  close(client);
}

TEST_P(LoopbackPeerTest, AnotherPortIsAnotherConnection) {
  Server server(GetParam());
  const int client = Connect(GetParam(), server.port());
  PeerAddress peer = server.Accept();
  PeerAddress here = server.here();
  here.port ^= 1;
  EXPECT_EQ(LoopbackPeerUser(peer, here), std::nullopt);
  peer.port ^= 1;
  EXPECT_EQ(LoopbackPeerUser(peer, server.here()), std::nullopt);
  close(client);
}

// Who made the socket counts, not who holds it.
TEST_P(LoopbackPeerTest, AnInheritedConnectionIsItsMakers) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  Server server(GetParam());
  const int client = Connect(GetParam(), server.port());
  const PeerAddress peer = server.Accept();
  const Child child([] { BecomeNobody(); });
  close(client);  // now only the child holds it
  EXPECT_EQ(LoopbackPeerUser(peer, server.here()), 0u);
}

INSTANTIATE_TEST_SUITE_P(Families, LoopbackPeerTest, testing::Values("127.0.0.1", "::1"),
                         [](const auto& info) {
                           return std::string(info.param) == "::1" ? "ipv6" : "ipv4";
                         });

TEST(LoopbackPeerTest, Ipv4InsideIpv6IsFoundFromBothSides) {
  Server server("::ffff:127.0.0.1");
  const int client = Connect("127.0.0.1", server.port());
  const PeerAddress peer = server.Accept();
  EXPECT_EQ(LoopbackPeerUser(peer, server.here()), geteuid());
  close(client);
  Server plain("127.0.0.1");
  const int mapped = Connect("::ffff:127.0.0.1", plain.port());
  const PeerAddress mapped_peer = plain.Accept();
  EXPECT_EQ(LoopbackPeerUser(mapped_peer, plain.here()), geteuid());
  close(mapped);
}

// On Debian, a host's own name often leads to 127.0.1.1.
TEST(LoopbackPeerTest, AConnectionBetweenTwoAddressesOfLoopbackIsKnown) {
  Server server("0.0.0.0");
  const int client = Connect("127.0.1.1", server.port(), "127.0.0.6");
  const PeerAddress peer = server.Accept();
  EXPECT_EQ(LoopbackPeerUser(peer, server.here()), geteuid());
  close(client);
}

// The kernel gives one source port to several users, each for a connection to another address.
TEST(LoopbackPeerTest, AnotherUserWithTheSamePortIsNotMistakenForTheFirst) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  Server server("0.0.0.0");
  const int client = Connect("127.0.0.1", server.port());
  const PeerAddress owner = server.Accept();
  const Child child([&] {
    BecomeNobody();
    ConnectFromPort("127.0.0.2", server.port(), owner.port);
  });
  pollfd listener = {server.listener(), POLLIN, 0};
  if (poll(&listener, 1, 2000) != 1) GTEST_SKIP() << "this kernel has no IP_LOCAL_PORT_RANGE";
  const PeerAddress stranger = server.Accept();
  ASSERT_EQ(stranger.port, owner.port);
  ASSERT_EQ(stranger.bytes, owner.bytes);
  EXPECT_EQ(LoopbackPeerUser(stranger, server.here()), kNobody);
  close(client);
}

TEST(LoopbackPeerTest, AnotherHostIsUnknown) {
  EXPECT_EQ(LoopbackPeerUser(*ParsePeer("ipv4:10.0.0.1:80"), *ParsePeer("ipv4:10.0.0.2:80")),
            std::nullopt);
}

}  // namespace
}  // namespace rollcall
