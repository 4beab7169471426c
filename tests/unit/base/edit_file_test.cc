// SPDX-License-Identifier: Apache-2.0
#include "base/edit_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>
#include <vector>

#include "base/read_file.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

std::string Read(const std::string& path) { return ReadFile(path).value_or(""); }

mode_t Mode(const std::string& path) {
  struct stat facts;
  return stat(path.c_str(), &facts) == 0 ? facts.st_mode & 07777 : 0;
}

absl::StatusOr<std::string> AddLine(std::string text) { return text + "line\n"; }

size_t FilesIn(const std::string& folder) {
  const std::filesystem::directory_iterator files(folder);
  return static_cast<size_t>(std::distance(begin(files), end(files)));
}

TEST(EditFileTest, ANewFileIsItsOwnersOnly) {
  const TemporaryTree tree;
  const std::string path = tree.root() + "/new";
  EXPECT_EQ(EditFile(path, false, AddLine).code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(EditFile(path, true, AddLine).ok());
  EXPECT_EQ(Read(path), "line\n");
  EXPECT_EQ(Mode(path), 0600u);
}

TEST(EditFileTest, AnExistingFileKeepsItsPermissions) {
  const TemporaryTree tree;
  const std::string path = tree.root() + "/old";
  tree.Write("old", "first\n");
  ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  ASSERT_TRUE(EditFile(path, false, AddLine).ok());
  EXPECT_EQ(Read(path), "first\nline\n");
  EXPECT_EQ(Mode(path), 0640u);
}

TEST(EditFileTest, ASymbolicLinkStays) {
  const TemporaryTree tree;
  tree.Write("real/file", "first\n");
  tree.Link("link", "real/file");
  ASSERT_TRUE(EditFile(tree.root() + "/link", false, AddLine).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(tree.root() + "/link"));
  EXPECT_EQ(Read(tree.root() + "/real/file"), "first\nline\n");
}

TEST(EditFileTest, AfterAnErrorTheFileIsAsItWas) {
  const TemporaryTree tree;
  tree.Write("file", "first\n");
  const auto refuse = [](const std::string&) -> absl::StatusOr<std::string> {
    return absl::InvalidArgumentError("no");
  };
  EXPECT_EQ(EditFile(tree.root() + "/file", false, refuse).message(), "no");
  EXPECT_EQ(Read(tree.root() + "/file"), "first\n");
  EXPECT_EQ(FilesIn(tree.root()), 1u);
}

TEST(EditFileTest, NoChangeOfManyAtOnceIsLost) {
  const TemporaryTree tree;
  const std::string path = tree.root() + "/file";
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&path] { EXPECT_TRUE(EditFile(path, true, AddLine).ok()); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Read(path).size(), 8 * std::string("line\n").size());
  EXPECT_EQ(FilesIn(tree.root()), 1u);
}

// A user who may open a folder may hold a lock on it.
TEST(EditFileTest, ALockOnTheFolderDelaysNoWriter) {
  const TemporaryTree tree;
  const int folder = open(tree.root().c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(flock(folder, LOCK_EX), 0);
  EXPECT_TRUE(EditFile(tree.root() + "/file", true, AddLine).ok());
  close(folder);
}

TEST(EditFileTest, OnlyTheOwnerMayOpenTheLock) {
  const TemporaryTree tree;
  const std::string path = tree.root() + "/file";
  const auto look = [&path](const std::string& text) -> absl::StatusOr<std::string> {
    EXPECT_EQ(Mode(path + ".lock"), 0600u);
    return text;
  };
  EXPECT_TRUE(EditFile(path, true, look).ok());
  EXPECT_EQ(FilesIn(tree.root()), 1u);
}

}  // namespace
}  // namespace rollcall
