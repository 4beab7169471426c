// SPDX-License-Identifier: Apache-2.0
// Real sockets, and processes of other users that listen on them.
#include "security/local_connection.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

using testing::HasSubstr;

constexpr uid_t kNobody = 65534;

// A process of this user that listens, and takes every connection.
class Listener {
 public:
  // `path`: of a unix socket; empty means 127.0.0.1. `accepts`: else connections wait in the queue.
  Listener(uid_t user, const std::string& path, bool accepts = true) {
    int port[2];
    EXPECT_EQ(pipe(port), 0);
    pid_ = fork();
    if (pid_ == 0) Run(user, path, accepts, port[1]);
    close(port[1]);
    EXPECT_EQ(read(port[0], &port_, sizeof(port_)), static_cast<ssize_t>(sizeof(port_)));
    close(port[0]);
    path_ = path;
  }
  ~Listener() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    if (!path_.empty()) unlink(path_.c_str());
  }

  std::string address() const {
    return path_.empty() ? absl::StrCat("127.0.0.1:", ntohs(port_)) : "unix:" + path_;
  }
  std::string name() const { return absl::StrCat("localhost:", ntohs(port_)); }

 private:
  [[noreturn]] static void Run(uid_t user, const std::string& path, bool accepts, int report) {
    if (user != geteuid() && setresuid(user, user, user) != 0) _exit(1);
    sockaddr_in tcp = {};
    sockaddr_un local = {};
    tcp.sin_family = AF_INET;
    tcp.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    local.sun_family = AF_UNIX;
    strncpy(local.sun_path, path.c_str(), sizeof(local.sun_path) - 1);
    const bool is_tcp = path.empty();
    const int fd = socket(is_tcp ? AF_INET : AF_UNIX, SOCK_STREAM, 0);
    const auto* address =
        is_tcp ? reinterpret_cast<sockaddr*>(&tcp) : reinterpret_cast<sockaddr*>(&local);
    socklen_t size = is_tcp ? sizeof(tcp) : sizeof(local);
    if (bind(fd, address, size) != 0 || listen(fd, 8) != 0) _exit(1);
    if (is_tcp) getsockname(fd, reinterpret_cast<sockaddr*>(&tcp), &size);
    if (write(report, &tcp.sin_port, sizeof(tcp.sin_port)) < 0) _exit(1);
    while (accepts) accept(fd, nullptr, nullptr);
    while (true) pause();
  }

  pid_t pid_;
  std::string path_;
  uint16_t port_ = 0;  // in the order of the network
};

std::string SocketPath() { return absl::StrCat("/tmp/local_connection_", getpid()); }

absl::Status Connect(const std::string& address, const std::string& user = "",
                     bool has_secret = false) {
  const auto parsed = DaemonUser::Parse(user);
  if (!parsed.ok()) return parsed.status();
  return ConnectOnThisHost(address, *parsed, has_secret).status();
}

class LocalConnectionTest : public testing::TestWithParam<bool> {
 protected:
  static std::string Path() { return GetParam() ? SocketPath() : ""; }
};

TEST_P(LocalConnectionTest, ADaemonOfThisUserIsBelieved) {
  const Listener daemon(geteuid(), Path());
  EXPECT_TRUE(Connect(daemon.address()).ok());
  EXPECT_TRUE(Connect(daemon.address(), "", true).ok());
}

TEST_P(LocalConnectionTest, AStrangerIsNot) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const Listener stranger(kNobody, Path());
  const absl::Status status = Connect(stranger.address());
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("uid 65534"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("--daemon-user=65534"));
}

TEST_P(LocalConnectionTest, AStrangerWhomTheUserNamesIs) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const Listener daemon(kNobody, Path());
  EXPECT_TRUE(Connect(daemon.address(), "65534", true).ok());
  EXPECT_TRUE(Connect(daemon.address(), "any", true).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(Connect(daemon.address(), "12345")));
}

INSTANTIATE_TEST_SUITE_P(Kinds, LocalConnectionTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "unix_socket" : "loopback"; });

// Its bytes would wait for the process that takes the connection later.
TEST(LocalConnectionTest, AListenerThatDoesNotAcceptIsUnknownSoNothingIsSent) {
  const Listener silent(geteuid(), "", false);
  const absl::Status status = Connect(silent.address());
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("does not accept connections"));
}

TEST(LocalConnectionTest, EachAddressOfANameIsTried) {
  const Listener daemon(geteuid(), "");  // on 127.0.0.1 only; [::1] may come first
  EXPECT_TRUE(Connect(daemon.name()).ok());
}

TEST(LocalConnectionTest, ReportsTheReasonIfNoServerListens) {
  std::string address;
  {
    const Listener gone(geteuid(), "");
    address = gone.address();
  }
  const absl::Status status = Connect(address);
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("refused"));
  EXPECT_TRUE(absl::IsUnavailable(Connect("unix:/nonexistent/socket")));
}

TEST(LocalConnectionTest, AUserThatThisHostDoesNotKnowIsAMistake) {
  EXPECT_TRUE(absl::IsInvalidArgument(DaemonUser::Parse("nobody-has-this-name").status()));
}

}  // namespace
}  // namespace rollcall
