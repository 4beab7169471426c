// SPDX-License-Identifier: Apache-2.0
// Finding the agent of a host, and a `rollcall run` that serves its job itself.
#include "agent/link/agent_info.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "agent/processes/held_lock.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;

class AgentInfoTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/rollcall-info-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    folder_ = fs::path(path) / "own";
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(folder_.parent_path()); }

  bool Found(const std::string& daemon) const {
    return FindHostAgent(daemon, {"/nonexistent", folder_.string()}).has_value();
  }

  fs::path folder_;
};

TEST_F(AgentInfoTest, FindsAnAgentWhileItRuns) {
  EXPECT_FALSE(Found("node:7655"));
  {
    const auto info = AgentInfo::Publish(folder_, "node:7655", ServedProcesses::kHost);
    ASSERT_TRUE(info.ok()) << info.status();
    EXPECT_TRUE(Found("node:7655"));
    EXPECT_FALSE(Found("elsewhere:7655"));
    struct stat about;
    ASSERT_EQ(stat((folder_ / kAgentInfo).c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 07777, 0644u);
  }
  EXPECT_FALSE(Found("node:7655"));
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(AgentInfoTest, OthersReadOnlyTheFileOfAnAgentThatServesThem) {
  const auto mode = [this](ServedProcesses served) {
    const mode_t before = umask(0);
    const auto info = AgentInfo::Publish(folder_, "node:7655", served);
    umask(before);
    EXPECT_TRUE(info.ok()) << info.status();
    return static_cast<int>(fs::status(folder_ / kAgentInfo).permissions());
  };
  EXPECT_EQ(mode(ServedProcesses::kUser), 0640);
  EXPECT_EQ(mode(ServedProcesses::kHost), 0644);
}

TEST_F(AgentInfoTest, HasTheNameUnderWhichTheAgentReportsItsHost) {
  const auto info =
      AgentInfo::Publish(folder_, "node:7655", ServedProcesses::kHost, "another-name");
  EXPECT_EQ(FindHostAgent("node:7655", {folder_})->host, "another-name");
}

TEST_F(AgentInfoTest, TakesLocalhostAsThisHost) {
  const auto info = AgentInfo::Publish(folder_, "localhost:7655", ServedProcesses::kUser);
  EXPECT_TRUE(Found("127.0.0.1:7655"));
}

TEST_F(AgentInfoTest, IgnoresTheFileOfAKilledAgent) {
  const pid_t child = fork();
  if (child == 0) {
    const auto info = AgentInfo::Publish(folder_, "node:7655", ServedProcesses::kHost);
    _exit(info.ok() ? 0 : 1);  // runs no destructors, like a killed agent
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  ASSERT_TRUE(fs::exists(folder_ / kAgentInfo));
  EXPECT_FALSE(Found("node:7655"));
  EXPECT_TRUE(AgentInfo::Publish(folder_, "node:7655", ServedProcesses::kHost).ok());
}

TEST_F(AgentInfoTest, RefusesASecondAgent) {
  const auto first = AgentInfo::Publish(folder_, "node:7655", ServedProcesses::kHost);
  const auto second = AgentInfo::Publish(folder_, "other:7655", ServedProcesses::kHost);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(Found("node:7655"));
}

TEST_F(AgentInfoTest, IgnoresAnotherUsersFileInAWorldWritableFolder) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: gives a file to another user";
  const auto info = AgentInfo::Publish(folder_, "node:7655", ServedProcesses::kHost);
  ASSERT_TRUE(info.ok());
  ASSERT_EQ(chown((folder_ / kAgentInfo).c_str(), 65534, 65534), 0);
  chmod(folder_.c_str(), 01777);
  EXPECT_FALSE(Found("node:7655"));
  ASSERT_EQ(chown(folder_.c_str(), 65534, 65534), 0);
  chmod(folder_.c_str(), 0755);
  EXPECT_TRUE(Found("node:7655"));
}

// In /dev/shm everybody could have made the folder first.
TEST_F(AgentInfoTest, IgnoresAnotherUsersFileInAFolderThatAnybodyCouldHaveMade) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: gives a file to another user";
  const fs::path parent = folder_ / "shared", folder = parent / "rollcall-0";
  fs::create_directories(folder);
  const auto info = AgentInfo::Publish(folder, "node:7655", ServedProcesses::kHost);
  ASSERT_TRUE(info.ok());
  ASSERT_EQ(chown((folder / kAgentInfo).c_str(), 65534, 65534), 0);
  ASSERT_EQ(chown(folder.c_str(), 65534, 65534), 0);
  EXPECT_TRUE(FindHostAgent("node:7655", {folder}).has_value());
  chmod(parent.c_str(), 01777);
  EXPECT_FALSE(FindHostAgent("node:7655", {folder}).has_value());
}

TEST_F(AgentInfoTest, PublishesNothingInAFolderOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: gives a folder to another user";
  ASSERT_EQ(chown(folder_.c_str(), 65534, 65534), 0);
  EXPECT_EQ(AgentInfo::Publish(folder_, "node:7655", ServedProcesses::kHost).status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(fs::is_empty(folder_));
}

// A reader finds no agent, or one with a complete and locked file.
// The daemons of one list know each other's jobs.
TEST_F(AgentInfoTest, FindsAnAgentThatReportsToOneOfTheDaemons) {
  const auto info = AgentInfo::Publish(folder_, "a:7655,localhost:7655", ServedProcesses::kHost);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_TRUE(Found("a:7655"));
  EXPECT_TRUE(Found("127.0.0.1:7655"));
  EXPECT_TRUE(Found("z:7655, a:7655"));
  EXPECT_FALSE(Found("a:7656"));
  EXPECT_FALSE(Found("z:7655"));
}

TEST_F(AgentInfoTest, NeverShowsAnIncompleteFile) {
  std::ofstream(folder_ / kAgentInfo) << "old:7655\nhost\n";  // of a killed agent
  std::atomic<bool> over{false};
  std::thread publisher([&] {
    while (!over) {
      const auto info = AgentInfo::Publish(folder_, "node:7655", ServedProcesses::kHost, "node-1");
      EXPECT_TRUE(info.ok()) << info.status();
      if (!info.ok()) break;
      const auto second =
          AgentInfo::Publish(folder_, "node:7655", ServedProcesses::kHost, "node-1");
      EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
    }
  });
  int seen = 0, half = 0;
  for (int i = 0; i < 20'000 || (seen == 0 && i < 2'000'000); ++i) {
    const int fd = open((folder_ / kAgentInfo).c_str(), O_RDONLY | O_CLOEXEC);
    char text[64];
    const ssize_t size = fd < 0 ? -1 : pread(fd, text, sizeof(text), 0);
    const std::string read(text, size < 0 ? 0 : static_cast<size_t>(size));
    if (fd >= 0 && read != "old:7655\nhost\n") {
      ++seen;
      half += read != "node:7655\nhost\nnode-1\n";
    }
    if (fd >= 0) close(fd);
  }
  over = true;
  publisher.join();
  EXPECT_GT(seen, 0);
  EXPECT_EQ(half, 0);
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(AgentInfoTest, RemovesTheFilesOfAgentsThatWereKilledWhilePublishing) {
  std::ofstream(folder_ / "agent.info.new") << "half";
  const auto info = AgentInfo::Publish(folder_, "node:7655", ServedProcesses::kHost);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_TRUE(Found("node:7655"));
  EXPECT_FALSE(fs::exists(folder_ / "agent.info.new"));
}

TEST_F(AgentInfoTest, DoesNotFollowALink) {
  std::ofstream(folder_ / "precious") << "keep me\n";
  fs::create_symlink(folder_ / "precious", folder_ / kAgentInfo);
  EXPECT_FALSE(AgentInfo::Publish(folder_, "node:7655", ServedProcesses::kHost).ok());
  std::string text;
  std::ifstream(folder_ / "precious") >> text;
  EXPECT_EQ(text, "keep");
}

TEST_F(AgentInfoTest, RunServesItsFolderWhileItHoldsTheLock) {
  EXPECT_FALSE(ServedByRun(folder_));
  const int fd = open((folder_ / kRunLock).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  EXPECT_FALSE(ServedByRun(folder_));
  ASSERT_TRUE(TakeLock(fd));
  EXPECT_TRUE(ServedByRun(folder_));
  close(fd);
  EXPECT_FALSE(ServedByRun(folder_));
}

}  // namespace
}  // namespace rollcall
