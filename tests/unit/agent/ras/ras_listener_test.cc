// SPDX-License-Identifier: Apache-2.0
// Looks for the sockets that this process holds, in the real /proc.
#include "agent/ras/ras_listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "absl/strings/str_cat.h"
#include "ras_server.h"

namespace rollcall {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string AddressOf(const RasServer& server) {
  return absl::StrCat("localhost:", server.end().port);
}

TEST(RasListenerTest, PortsOfAddresses) {
  EXPECT_EQ(RasPort(""), 28028);
  EXPECT_EQ(RasPort("localhost:5000"), 5000);
  EXPECT_EQ(RasPort("[::1]:5001"), 5001);
  EXPECT_EQ(RasPort("node-17"), std::nullopt);
  EXPECT_EQ(RasPort("node-17:0"), std::nullopt);
  EXPECT_EQ(RasPort("node-17:65536"), std::nullopt);
  EXPECT_EQ(RasPort("node-17:\x1b[2J"), std::nullopt);
}

TEST(RasListenerTest, TheSocketOfAProcessOfTheJobIsFound) {
  const RasServer server([](int) {});
  const auto found = FindRasListener("/proc", AddressOf(server), {getpid()});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(found->at == server.end());
  EXPECT_THAT(found->pids, ElementsAre(getpid()));
}

TEST(RasListenerTest, NoServerListensThere) {
  std::string address;
  {
    const RasServer server([](int) {});
    address = AddressOf(server);
  }
  EXPECT_THAT(std::string(FindRasListener("/proc", address, {getpid()}).status().message()),
              HasSubstr("no program listens at port"));
}

// A child with descriptors of its own: this process's socket, which it closes.
class OtherProcess {
 public:
  explicit OtherProcess(int closes) {
    int ready[2];
    if (pipe(ready) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      for (int fd = closes; fd < 1024; ++fd) {
        if (fd != ready[1]) close(fd);
      }
      char byte = 1;
      if (write(ready[1], &byte, 1) != 1) _exit(1);
      pause();
      _exit(0);
    }
    char byte = 0;
    is_ready_ = read(ready[0], &byte, 1) == 1;
    close(ready[0]);
    close(ready[1]);
  }
  ~OtherProcess() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }
  bool is_ready() const { return is_ready_; }

 private:
  pid_t pid_ = -1;
  bool is_ready_ = false;
};

TEST(RasListenerTest, AnotherProgramAtTheAddressIsNotAsked) {
  const RasServer server([](int) {});
  const OtherProcess job(3);
  ASSERT_TRUE(job.is_ready());
  const auto found = FindRasListener("/proc", AddressOf(server), {job.pid()});
  EXPECT_THAT(std::string(found.status().message()),
              HasSubstr("none of its processes listens at port"));
}

TEST(RasListenerTest, AnAddressOfTwoJobsIsNotAsked) {
  // The child keeps the first job's socket, and this process has both.
  const RasServer first([](int) {});
  const OtherProcess job(first.end().port);  // closes nothing: no descriptor is that large
  ASSERT_TRUE(job.is_ready());
  UniqueFd second(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  ASSERT_EQ(setsockopt(second.get(), SOL_SOCKET, SO_REUSEPORT, &yes, sizeof(yes)), 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(first.end().port);
  ASSERT_EQ(bind(second.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(listen(second.get(), 1), 0);
  const auto found = FindRasListener("/proc", AddressOf(first), {job.pid()});
  EXPECT_THAT(std::string(found.status().message()), HasSubstr("other processes listen at port"));
}

TEST(RasListenerTest, AProcessThatHasEndedIsNotReached) {
  pid_t ended = 0;
  {
    const OtherProcess job(3);
    ended = job.pid();
  }
  EXPECT_THAT(std::string(FindRasListener("/proc", "", {ended}).status().message()),
              HasSubstr("network namespace"));
}

}  // namespace
}  // namespace rollcall
