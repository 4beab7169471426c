// SPDX-License-Identifier: Apache-2.0
#include "net/listen_sockets.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

std::string Path() { return absl::StrCat(testing::TempDir(), "listen_", getpid(), ".sock"); }

bool Exists(const std::string& path) {
  struct stat file = {};
  return lstat(path.c_str(), &file) == 0;
}

TEST(ListenSocketsTest, PortZeroIsAnyFreePort) {
  auto sockets = ListenSockets::Open("127.0.0.1:0");
  ASSERT_TRUE(sockets.ok()) << sockets.status();
  EXPECT_GT(sockets->port(), 0);
}

TEST(ListenSocketsTest, AllAddressesOfANameHaveOnePort) {
  auto sockets = ListenSockets::Open("localhost:0");
  ASSERT_TRUE(sockets.ok()) << sockets.status();
  EXPECT_GT(sockets->port(), 0);
}

TEST(ListenSocketsTest, EveryAddressOfThisHostIsOneSocket) {
  for (const char* address : {"0.0.0.0:0", "[::]:0"}) {
    auto sockets = ListenSockets::Open(address);
    ASSERT_TRUE(sockets.ok()) << sockets.status();
    EXPECT_EQ(sockets->Release().size(), 1u);
  }
}

TEST(ListenSocketsTest, APortInUseIsRefused) {
  const auto first = ListenSockets::Open("127.0.0.1:0");
  ASSERT_TRUE(first.ok());
  const auto second = ListenSockets::Open(absl::StrCat("127.0.0.1:", first->port()));
  EXPECT_TRUE(absl::IsUnavailable(second.status()));
  EXPECT_NE(std::string(second.status().message()).find("in use"), std::string::npos)
      << second.status();
}

TEST(ListenSocketsTest, AnAddressOfAnotherMachineIsRefused) {
  const auto sockets = ListenSockets::Open("192.0.2.1:0");
  EXPECT_TRUE(absl::IsUnavailable(sockets.status()));
}

TEST(ListenSocketsTest, AUnixSocketIsItsOwnersAlone) {
  const std::string path = Path();
  {
    const auto sockets = ListenSockets::Open("unix:" + path);
    ASSERT_TRUE(sockets.ok()) << sockets.status();
    struct stat file = {};
    ASSERT_EQ(lstat(path.c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & 0777, 0600u);
  }
  EXPECT_FALSE(Exists(path)) << "removed at the end";
}

TEST(ListenSocketsTest, ALivingUnixSocketIsNotTaken) {
  const std::string path = Path();
  auto first = ListenSockets::Open("unix:" + path);
  ASSERT_TRUE(first.ok()) << first.status();
  std::vector<UniqueFd> fds = first->Release();
  const auto second = ListenSockets::Open("unix:" + path);
  EXPECT_TRUE(absl::IsUnavailable(second.status())) << second.status();
  EXPECT_TRUE(Exists(path));
  fds.clear();
  const auto third = ListenSockets::Open("unix:" + path);
  EXPECT_TRUE(third.ok()) << "what a dead process left is replaced: " << third.status();
}

TEST(ListenSocketsTest, AFileThatIsNotASocketStays) {
  const std::string path = Path();
  FILE* file = fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  fclose(file);
  EXPECT_FALSE(ListenSockets::Open("unix:" + path).ok());
  EXPECT_TRUE(Exists(path));
  unlink(path.c_str());
}

}  // namespace
}  // namespace rollcall
