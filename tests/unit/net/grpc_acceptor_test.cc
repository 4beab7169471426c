// SPDX-License-Identifier: Apache-2.0
// Real sockets. The time limits are the real ones only where a test needs none of them.
#include "net/grpc_acceptor.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "eventually.h"
#include "net/listen_sockets.h"

namespace rollcall {
namespace {

int Connect(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0)
      << strerror(errno);
  return fd;
}

bool IsClosed(int fd) {
  char byte;
  return recv(fd, &byte, 1, MSG_DONTWAIT) == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

std::string PeerOf(int client) {
  sockaddr_in own = {};
  socklen_t size = sizeof(own);
  getsockname(client, reinterpret_cast<sockaddr*>(&own), &size);
  return absl::StrCat("ipv4:127.0.0.1:", ntohs(own.sin_port));
}

class GrpcAcceptorTest : public testing::Test {
 protected:
  void Start(const PendingLimits& limits) {
    auto sockets = ListenSockets::Open("127.0.0.1:0");
    ASSERT_TRUE(sockets.ok()) << sockets.status();
    port_ = sockets->port();
    GrpcAcceptorOptions options;
    options.limits = limits;
    options.hand_over = [this](int fd) {
      const std::lock_guard<std::mutex> lock(mutex_);
      handed_over_.push_back(fd);
    };
    options.refused = [this](const std::string& reason, const std::string&) {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++refused_[reason];
    };
    options.has_called = [this](int, uint64_t) { return has_called_.load(); };
    options.ended = [this](int, uint64_t) { ++ended_; };
    acceptor_ = std::make_unique<GrpcAcceptor>(sockets->Release(), std::move(options));
    ASSERT_TRUE(acceptor_->Start());
  }
  ~GrpcAcceptorTest() override {
    if (acceptor_ != nullptr) acceptor_->Stop();
    for (const int fd : handed_over_) close(fd);
    for (const int fd : clients_) close(fd);
  }

  int Client() {
    clients_.push_back(Connect(port_));
    return clients_.back();
  }
  size_t handed_over() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return handed_over_.size();
  }
  int refused(const std::string& reason) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return refused_[reason];
  }

  const AllThreadsEnd all_threads_end_;
  int port_ = 0;
  std::unique_ptr<GrpcAcceptor> acceptor_;
  std::vector<int> clients_;
  std::mutex mutex_;
  std::vector<int> handed_over_;
  std::map<std::string, int> refused_;
  std::atomic<bool> has_called_{false};
  std::atomic<int> ended_{0};
};

PendingLimits Short() {
  PendingLimits limits;
  limits.silent_ns = limits.unknown_ns = 300'000'000;
  limits.replaceable_ns = limits.replaceable_silent_ns = 0;
  return limits;
}

TEST_F(GrpcAcceptorTest, AClientThatSaysNothingIsClosed) {
  Start(Short());
  const int client = Client();
  EXPECT_TRUE(Eventually([client] { return IsClosed(client); }));
  EXPECT_TRUE(Eventually([this] { return refused(kRefusedSilent) == 1; }));
  EXPECT_EQ(ended_.load(), 1);
}

TEST_F(GrpcAcceptorTest, TellsThatGrpcHasClosedAConnectionOfAStranger) {
  Start(PendingLimits());
  Client();
  ASSERT_TRUE(Eventually([this] { return handed_over() == 1; }));
  close(handed_over_[0]);
  handed_over_.clear();
  EXPECT_TRUE(Eventually([this] { return ended_.load() == 1; }));
}

TEST_F(GrpcAcceptorTest, AnUnadmittedClientIsClosed) {
  Start(Short());
  const int client = Client();
  ASSERT_EQ(send(client, "P", 1, 0), 1);
  EXPECT_TRUE(Eventually([client] { return IsClosed(client); }));
  EXPECT_TRUE(Eventually([this] { return refused(kRefusedUnknown) == 1; }));
}

TEST_F(GrpcAcceptorTest, AnAdmittedClientStays) {
  Start(Short());
  const int known = Client();
  ASSERT_EQ(send(known, "P", 1, 0), 1);
  ASSERT_TRUE(Eventually([this] { return handed_over() == 1; }));
  acceptor_->Admit(PeerOf(known));
  const int stranger = Client();  // shows that the time has passed
  EXPECT_TRUE(Eventually([stranger] { return IsClosed(stranger); }));
  EXPECT_FALSE(IsClosed(known));
}

TEST_F(GrpcAcceptorTest, KnowsAtWhichAddressAConnectionArrived) {
  Start(Short());
  const std::string peer = PeerOf(Client());
  ASSERT_TRUE(Eventually([this] { return handed_over() == 1; }));
  EXPECT_EQ(acceptor_->LocalAddressOf(peer), absl::StrCat("ipv4:127.0.0.1:", port_));
  EXPECT_EQ(acceptor_->LocalAddressOf("ipv4:127.0.0.1:1"), "");
}

TEST(LoopbackConnectionsTest, ASecondConnectionOfOnePeerIsRefusedWhileTheFirstIsOpen) {
  std::map<int, uint64_t> inodes = {{5, 50}, {6, 60}, {7, 70}};
  LoopbackConnections connections([&inodes](int fd) { return inodes[fd]; });
  EXPECT_TRUE(connections.Add(5, "owner", "127.0.0.1"));
  EXPECT_FALSE(connections.Add(6, "owner", "127.0.0.2")) << "a stranger with the owner's port";
  EXPECT_EQ(connections.LocalAddressOf("owner"), "127.0.0.1");
  inodes[5] = 0;  // closed
  EXPECT_EQ(connections.LocalAddressOf("owner"), "");
  EXPECT_TRUE(connections.Add(7, "owner", "127.0.0.2"));
  EXPECT_EQ(connections.LocalAddressOf("owner"), "127.0.0.2");
  inodes[5] = 51;  // the system has given the descriptor to another connection
  EXPECT_TRUE(connections.Add(5, "other", "127.0.0.1"));
  EXPECT_EQ(connections.LocalAddressOf("owner"), "127.0.0.2");
  inodes[7] = 71;
  EXPECT_TRUE(connections.Add(7, "third", "127.0.0.1"));
  EXPECT_EQ(connections.LocalAddressOf("owner"), "");
}

TEST_F(GrpcAcceptorTest, AClientWaitsUntilGrpcHasRoom) {
  PendingLimits limits;
  limits.in_grpc = 1;
  Start(limits);
  const int first = Client();
  ASSERT_EQ(send(first, "P", 1, 0), 1);
  ASSERT_TRUE(Eventually([this] { return handed_over() == 1; }));
  const int second = Client(), gives_up = Client();
  ASSERT_EQ(send(second, "P", 1, 0), 1);
  ASSERT_EQ(send(gives_up, "P", 1, 0), 1);
  shutdown(gives_up, SHUT_RDWR);
  EXPECT_TRUE(Eventually([gives_up] { return IsClosed(gives_up); }));
  EXPECT_EQ(handed_over(), 1u);
  acceptor_->Admit(PeerOf(first));
  EXPECT_TRUE(Eventually([this] { return handed_over() == 2; }));
  EXPECT_FALSE(IsClosed(second));
}

TEST_F(GrpcAcceptorTest, AHandshakeThatStandsMakesRoomForANewcomer) {
  PendingLimits limits;
  limits.in_grpc = 1;
  limits.replaceable_still_ns = 400'000'000;
  Start(limits);
  const int stranger = Client();
  ASSERT_EQ(send(stranger, "P", 1, 0), 1);
  ASSERT_TRUE(Eventually([this] { return handed_over() == 1; }));
  const int newcomer = Client();
  ASSERT_EQ(send(newcomer, "P", 1, 0), 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(900));
  EXPECT_FALSE(IsClosed(stranger)) << "gRPC has not read what it sent";
  char byte;
  ASSERT_EQ(read(handed_over_[0], &byte, 1), 1);
  EXPECT_TRUE(Eventually([stranger] { return IsClosed(stranger); }));
  EXPECT_TRUE(Eventually([this] { return handed_over() == 2; }));
  EXPECT_FALSE(IsClosed(newcomer));
}

TEST_F(GrpcAcceptorTest, AConnectionWithACallMakesRoomOnlyAfterTheTimeOfAll) {
  PendingLimits limits;
  limits.in_grpc = 1;
  limits.replaceable_still_ns = 0;
  has_called_ = true;
  Start(limits);
  const int first = Client();
  ASSERT_EQ(send(first, "P", 1, 0), 1);
  ASSERT_TRUE(Eventually([this] { return handed_over() == 1; }));
  char byte;
  ASSERT_EQ(read(handed_over_[0], &byte, 1), 1);
  Client();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_FALSE(IsClosed(first));
}

TEST_F(GrpcAcceptorTest, TooManyClientsMakeRoomForEachOther) {
  PendingLimits limits;
  limits.all = 2;
  limits.replaceable_ns = limits.replaceable_silent_ns = 0;
  Start(limits);
  const int first = Client();
  Client();
  EXPECT_FALSE(IsClosed(first));
  Client();
  EXPECT_TRUE(Eventually([first] { return IsClosed(first); }));
  EXPECT_TRUE(Eventually([this] { return refused(kRefusedCrowd) == 1; }));
}

TEST_F(GrpcAcceptorTest, AYoungConnectionIsNotReplaced) {
  PendingLimits limits;
  limits.all = 1;
  limits.replaceable_ns = limits.replaceable_silent_ns = int64_t{3600} * 1'000'000'000;
  limits.silent_ns = limits.unknown_ns = limits.replaceable_ns;
  Start(limits);
  const int first = Client();
  const int second = Client();
  ASSERT_EQ(send(second, "P", 1, 0), 1);
  ASSERT_EQ(send(first, "P", 1, 0), 1);
  ASSERT_TRUE(Eventually([this] { return handed_over() == 1; }));
  acceptor_->Admit(PeerOf(first));
  EXPECT_TRUE(Eventually([this] { return handed_over() == 2; }))
      << "the second has waited in the queue of the system";
}

// Lowers the limit of descriptors to what is open, and one more for a client.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t limit) {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few = before_;
    few.rlim_cur = limit;
    setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_ = {};
};

TEST_F(GrpcAcceptorTest, GoesOnWhenADescriptorIsFreeAgain) {
  PendingLimits limits;
  limits.replaceable_ns = limits.replaceable_silent_ns = int64_t{3600} * 1'000'000'000;
  limits.silent_ns = limits.unknown_ns = limits.replaceable_ns;
  Start(limits);
  const int client = Client();  // connected in the system's queue, or accepted
  ASSERT_EQ(send(client, "P", 1, 0), 1);
  ASSERT_TRUE(Eventually([this] { return handed_over() == 1; }));
  const int late = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  clients_.push_back(late);
  {
    const FewDescriptors few(static_cast<rlim_t>(late) + 1);  // none is free
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port_));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(connect(late, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    ASSERT_EQ(send(late, "P", 1, 0), 1);
    ASSERT_TRUE(Eventually([this] { return acceptor_->IsStarved(); })) << "no descriptor is free";
    EXPECT_EQ(handed_over(), 1u);
    EXPECT_EQ(refused(kRefusedDescriptors), 1) << "said once, not each time it looks";
  }
  EXPECT_TRUE(Eventually([this] { return handed_over() == 2; }));
  EXPECT_FALSE(acceptor_->IsStarved());
}

TEST_F(GrpcAcceptorTest, LeavesDescriptorsToThePage) {
  Start(PendingLimits());
  const int highest = dup(0);
  close(highest);
  const FewDescriptors few(static_cast<rlim_t>(highest) + 8);
  const int client = Client();
  EXPECT_TRUE(Eventually([client] { return IsClosed(client); }));
  EXPECT_TRUE(Eventually([this] { return refused(kRefusedDescriptors) == 1; }));
}

}  // namespace
}  // namespace rollcall
