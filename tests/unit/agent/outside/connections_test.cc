// SPDX-License-Identifier: Apache-2.0
// Which real processes talk with each other by TCP.
#include "agent/outside/connections.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

namespace rollcall {
namespace {

constexpr int64_t kNoDeadline = std::numeric_limits<int64_t>::max();

// A child that does something, and then waits for its end.
class Child {
 public:
  explicit Child(const std::function<void()>& act) {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    pid_ = fork();
    if (pid_ == 0) {
      act();
      EXPECT_EQ(write(ready[1], "x", 1), 1);
      while (true) pause();
    }
    char byte = 0;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

class Listener {
 public:
  Listener() : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address_), sizeof(address_)), 0);
    socklen_t size = sizeof(address_);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address_), &size), 0);
    EXPECT_EQ(listen(fd_, 8), 0);
  }
  ~Listener() { close(fd_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  void Connect() const {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address_), sizeof(address_)), 0);
  }
  void Accept() const { EXPECT_GE(accept(fd_, nullptr, nullptr), 0); }

 private:
  const int fd_;
  sockaddr_in address_ = {};
};

ConnectedPair PairOf(pid_t one, pid_t other) {
  return {std::min(one, other), std::max(one, other)};
}

std::vector<pid_t> Sorted(std::vector<pid_t> pids) {
  std::sort(pids.begin(), pids.end());
  return pids;
}

TEST(ConnectionsTest, FindsWhoTalksWithWhom) {
  const Listener listener;
  const Child client([&] { listener.Connect(); });
  const Child server([&] { listener.Accept(); });
  const Child other([] {});
  const auto pairs =
      FindConnections("/proc", Sorted({client.pid(), server.pid(), other.pid()}), kNoDeadline);
  EXPECT_EQ(pairs, std::vector<ConnectedPair>{PairOf(client.pid(), server.pid())});
}

TEST(ConnectionsTest, AnInheritedSocketIsTheParents) {
  const Listener listener;
  const Child client([&] { listener.Connect(); });
  listener.Accept();  // of this process
  const Child child([] {});
  const auto pairs =
      FindConnections("/proc", Sorted({client.pid(), getpid(), child.pid()}), kNoDeadline);
  EXPECT_EQ(pairs, std::vector<ConnectedPair>{PairOf(client.pid(), getpid())});
}

TEST(ConnectionsTest, EndsAtItsDeadline) {
  EXPECT_TRUE(FindConnections("/proc", {getpid()}, 0).empty());
}

}  // namespace
}  // namespace rollcall
