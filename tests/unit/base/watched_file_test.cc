// SPDX-License-Identifier: Apache-2.0
#include "base/watched_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "temporary_tree.h"

namespace rollcall {
namespace {

using Content = std::optional<std::string>;

class WatchedFileTest : public testing::Test {
 protected:
  // The content of a call that must not fail.
  Content Read() {
    absl::StatusOr<Content> content = file_.ReadIfChanged();
    EXPECT_TRUE(content.ok()) << content.status();
    return content.ok() ? *content : std::nullopt;
  }
  std::string Error() { return std::string(file_.ReadIfChanged().status().message()); }

  void Age(const std::string& name, int64_t seconds) const {
    const timespec then = {1'700'000'000 - seconds, 0};
    const timespec both[2] = {then, then};
    ASSERT_EQ(utimensat(AT_FDCWD, (tree_.root() + "/" + name).c_str(), both, 0), 0);
  }

  TemporaryTree tree_;
  WatchedFile file_{tree_.root() + "/file"};
};

TEST_F(WatchedFileTest, ReturnsTheContentOnceForEachVersion) {
  tree_.Write("file", "one");
  EXPECT_EQ(Read(), "one");
  EXPECT_EQ(Read(), std::nullopt);
  tree_.Write("file", "three");
  EXPECT_EQ(Read(), "three");
  EXPECT_EQ(Read(), std::nullopt);
}

TEST_F(WatchedFileTest, SeesAWriteOfTheSameSizeInTheSameTick) {
  tree_.Write("file", "one");
  EXPECT_EQ(Read(), "one");
  tree_.Write("file", "two");
  EXPECT_EQ(Read(), "two");
}

TEST_F(WatchedFileTest, SeesARenamedFileOfTheSameTimeAndSize) {
  tree_.Write("file", "one");
  Age("file", 100);
  EXPECT_EQ(Read(), "one");
  tree_.Write("new", "two");
  Age("new", 100);
  std::filesystem::rename(tree_.root() + "/new", tree_.root() + "/file");
  EXPECT_EQ(Read(), "two");
}

// Kubernetes swaps a link to the folder.
TEST_F(WatchedFileTest, SeesALinkThatPointsElsewhere) {
  tree_.Write("v1/file", "one");
  tree_.Write("v2/file", "two");
  tree_.Link("data", "v1");
  WatchedFile file(tree_.root() + "/data/file");
  EXPECT_EQ(file.ReadIfChanged()->value(), "one");
  tree_.Link("new", "v2");
  std::filesystem::rename(tree_.root() + "/new", tree_.root() + "/data");
  EXPECT_EQ(file.ReadIfChanged()->value(), "two");
}

TEST_F(WatchedFileTest, ReportsAMissingFileEachTimeUntilItReturns) {
  EXPECT_EQ(Error(), "cannot read " + tree_.root() + "/file: No such file or directory");
  EXPECT_NE(Error(), "");
  tree_.Write("file", "one");
  EXPECT_EQ(Read(), "one");
  tree_.Remove("file");
  EXPECT_NE(Error(), "");
  tree_.Write("file", "one");
  EXPECT_EQ(Read(), "one");
}

TEST_F(WatchedFileTest, RefusesWhatIsNotARegularFileWithoutWaiting) {
  ASSERT_EQ(mkfifo((tree_.root() + "/file").c_str(), 0600), 0);
  EXPECT_EQ(Error(), tree_.root() + "/file is not a regular file");
  tree_.Remove("file");
  std::filesystem::create_directory(tree_.root() + "/file");
  EXPECT_EQ(Error(), tree_.root() + "/file is not a regular file");
}

TEST_F(WatchedFileTest, RefusesALargeFile) {
  tree_.Write("file", std::string(WatchedFile::kMaxBytes, 'x'));
  EXPECT_EQ(Read()->size(), WatchedFile::kMaxBytes);
  tree_.Write("file", std::string(WatchedFile::kMaxBytes + 1, 'x'));
  EXPECT_EQ(Error(), tree_.root() + "/file is larger than 1 MiB");
}

TEST_F(WatchedFileTest, SaysWhoMayReadTheFile) {
  tree_.Write("file", "one");
  ASSERT_EQ(chmod((tree_.root() + "/file").c_str(), 0640), 0);
  EXPECT_EQ(Read(), "one");
  EXPECT_EQ(file_.mode(), 0640u);
  EXPECT_EQ(file_.owner(), geteuid());
}

}  // namespace
}  // namespace rollcall
