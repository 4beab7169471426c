// SPDX-License-Identifier: Apache-2.0
// Real connections over loopback, and processes of other users at their other end.
#include "security/loopback_peer.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>

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
    close(listener_);
  }

  uint16_t port() const { return port_; }
  int connection() const { return connection_; }

  // The accepted client's address, as gRPC writes it.
  PeerAddress Accept() {
    Endpoint end;
    end.size = sizeof(end.storage);
    connection_ = accept(listener_, end.get(), &end.size);
    EXPECT_GE(connection_, 0);
    char text[INET6_ADDRSTRLEN] = "";
    const bool is_v4 = end.storage.ss_family == AF_INET;
    inet_ntop(end.storage.ss_family,
              is_v4 ? static_cast<void*>(&reinterpret_cast<sockaddr_in*>(&end.storage)->sin_addr)
                    : &reinterpret_cast<sockaddr_in6*>(&end.storage)->sin6_addr,
              text, sizeof(text));
    const std::string port = std::to_string(end.port());
    const auto peer = ParsePeer(is_v4 ? "ipv4:" + std::string(text) + ":" + port
                                      : "ipv6:[" + std::string(text) + "]:" + port);
    EXPECT_TRUE(peer.has_value()) << text;
    return peer.value_or(PeerAddress());
  }

 private:
  int listener_ = -1;
  int connection_ = -1;
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
  EXPECT_EQ(LoopbackPeerUser(peer, server.port()), geteuid());
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
  EXPECT_EQ(LoopbackPeerUser(peer, server.port()), kNobody);
}

// The kernel says uid 0 of a socket that nobody holds any more.
TEST_P(LoopbackPeerTest, AClosedConnectionIsNobodys) {
  Server server(GetParam());
  const int client = Connect(GetParam(), server.port());
  const PeerAddress peer = server.Accept();
  ASSERT_EQ(LoopbackPeerUser(peer, server.port()), geteuid());
  close(client);  // FIN_WAIT_2 as long as the server's end is open
  EXPECT_EQ(LoopbackPeerUser(peer, server.port()), std::nullopt);
  shutdown(server.connection(), SHUT_WR);  // TIME_WAIT
  EXPECT_EQ(LoopbackPeerUser(peer, server.port()), std::nullopt);
}

TEST_P(LoopbackPeerTest, AHalfClosedConnectionIsNobodys) {
  Server server(GetParam());
  const int client = Connect(GetParam(), server.port());
  const PeerAddress peer = server.Accept();
  shutdown(client, SHUT_WR);
  EXPECT_EQ(LoopbackPeerUser(peer, server.port()), std::nullopt);
  close(client);
}

TEST_P(LoopbackPeerTest, AnotherPortIsAnotherConnection) {
  Server server(GetParam());
  const int client = Connect(GetParam(), server.port());
  PeerAddress peer = server.Accept();
  EXPECT_EQ(LoopbackPeerUser(peer, static_cast<uint16_t>(server.port() ^ 1)), std::nullopt);
  EXPECT_EQ(LoopbackPeerUser(peer, 0), std::nullopt);
  peer.port ^= 1;
  EXPECT_EQ(LoopbackPeerUser(peer, server.port()), std::nullopt);
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
  EXPECT_EQ(LoopbackPeerUser(peer, server.port()), 0u);
}

INSTANTIATE_TEST_SUITE_P(Families, LoopbackPeerTest, testing::Values("127.0.0.1", "::1"),
                         [](const auto& info) {
                           return std::string(info.param) == "::1" ? "ipv6" : "ipv4";
                         });

TEST(LoopbackPeerTest, Ipv4InsideIpv6IsFoundFromBothSides) {
  Server server("::ffff:127.0.0.1");
  const int client = Connect("127.0.0.1", server.port());
  EXPECT_EQ(LoopbackPeerUser(server.Accept(), server.port()), geteuid());
  close(client);
  Server plain("127.0.0.1");
  const int mapped = Connect("::ffff:127.0.0.1", plain.port());
  EXPECT_EQ(LoopbackPeerUser(plain.Accept(), plain.port()), geteuid());
  close(mapped);
}

TEST(LoopbackPeerTest, AnotherAddressOfLoopbackCountsAtBothEndsOnly) {
  Server server("127.0.0.5");
  const int from_same = Connect("127.0.0.5", server.port(), "127.0.0.5");
  EXPECT_EQ(LoopbackPeerUser(server.Accept(), server.port()), geteuid());
  close(from_same);
  Server other("127.0.0.5");
  const int from_another = Connect("127.0.0.5", other.port(), "127.0.0.6");
  EXPECT_EQ(LoopbackPeerUser(other.Accept(), other.port()), std::nullopt);
  close(from_another);
}

// On Debian, a host's own name often leads to 127.0.1.1.
TEST(LoopbackPeerTest, AnAddressThatThisProcessListensOnCounts) {
  Server server("127.0.1.1");
  const int client = Connect("127.0.1.1", server.port(), "127.0.0.1");
  const PeerAddress peer = server.Accept();
  EXPECT_EQ(LoopbackPeerUser(peer, server.port()), std::nullopt);
  EXPECT_EQ(LoopbackPeerUser(peer, server.port(), {"127.0.1.1", "no address"}), geteuid());
  close(client);
}

TEST(LoopbackPeerTest, AnotherHostIsUnknown) {
  EXPECT_EQ(LoopbackPeerUser(*ParsePeer("ipv4:10.0.0.1:80"), 80), std::nullopt);
}

}  // namespace
}  // namespace rollcall
