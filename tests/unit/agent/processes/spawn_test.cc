// SPDX-License-Identifier: Apache-2.0
// Programs that the agent starts, also from a file server that has stopped answering.
#include "agent/processes/spawn.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/durations.h"
#include "base/monotonic_clock.h"
#include "eventually.h"
#include "file_server.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

std::vector<char> Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(SpawnTest, StartsAProgramWithTheseFilesAndNoOthers) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  pid_t pid = 0;
  ASSERT_EQ(SpawnApart("/bin/ls", {"ls", "/proc/self/fd"}, {-1, writer.get(), -1}, &pid), 0);
  EXPECT_TRUE(IsApart(pid));
  writer = UniqueFd();
  std::string said;
  char part[64];
  for (ssize_t size; (size = read(reader.get(), part, sizeof(part))) > 0;) {
    said.append(part, static_cast<size_t>(size));
  }
  EXPECT_EQ(said, "0\n1\n2\n3\n") << "3 is the listed folder";
  EXPECT_TRUE(Eventually([pid] { return CollectChild(pid); }));
  EXPECT_FALSE(IsApart(pid));
}

// For the kernel its parent is the thread that has started it.
TEST(SpawnTest, AProgramThatEndsWithItsParentRunsOn) {
  pid_t pid = 0;
  ASSERT_EQ(
      SpawnApart("/usr/bin/setpriv", {"setpriv", "--pdeathsig", "KILL", "sleep", "1"}, {}, &pid),
      0);
  usleep(300'000);
  siginfo_t end = {};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(pid), &end, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(end.si_code, CLD_EXITED);
  EXPECT_EQ(end.si_status, 0);
  EXPECT_TRUE(Eventually([pid] { return CollectChild(pid); }));
}

TEST(SpawnTest, SaysWhyAProgramDoesNotStart) {
  pid_t pid = 0;
  EXPECT_EQ(SpawnApart("/nowhere/program", {"program"}, {}, &pid), ENOENT);
  EXPECT_EQ(SpawnErrorInWords(ENOENT), "No such file or directory");
}

TEST(SpawnTest, AFileServerThatDoesNotAnswerBlocksOneThreadOnly) {
  const TemporaryTree tree;
  const std::string folder = tree.root() + "/server";
  FileServer server(folder, "program", Contents("/bin/true"));
  if (!server.problem().empty()) GTEST_SKIP() << server.problem();
  pid_t pid = 0;
  ASSERT_EQ(SpawnApart(folder + "/program", {"program"}, {}, &pid), 0) << "it answers";
  EXPECT_TRUE(Eventually([pid] { return CollectChild(pid); }));
  server.StopAt(FUSE_READ);
  const int64_t begun_ns = MonotonicNs();
  EXPECT_EQ(SpawnApart(folder + "/program", {"program"}, {}, &pid), ETIMEDOUT);
  EXPECT_LT(MonotonicNs() - begun_ns, 60 * kSecond);
  ASSERT_TRUE(Eventually([&server] { return server.HasStopped(); }));
  EXPECT_EQ(SpawnErrorInWords(ETIMEDOUT), "its file server does not answer");
  const int64_t again_ns = MonotonicNs();
  for (int i = 0; i < 100; ++i) {  // each would take two seconds
    EXPECT_EQ(SpawnApart("/bin/true", {"true"}, {}, &pid), ETIMEDOUT) << "one thread is enough";
  }
  EXPECT_LT(MonotonicNs() - again_ns, 60 * kSecond);
  server.Kill();
  EXPECT_TRUE(Eventually([&pid] { return SpawnApart("/bin/true", {"true"}, {}, &pid) == 0; }));
  EXPECT_TRUE(Eventually([pid] { return CollectChild(pid); }));
}

}  // namespace
}  // namespace rollcall
