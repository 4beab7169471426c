// SPDX-License-Identifier: Apache-2.0
#include "cli/diagnose/ask_for_dump.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

// Tells whether somebody has opened a file.
class OpenWatch {
 public:
  explicit OpenWatch(const std::string& path) : fd_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    EXPECT_GE(inotify_add_watch(fd_.get(), path.c_str(), IN_OPEN), 0);
  }
  bool Saw() const {
    char events[4096];
    return read(fd_.get(), events, sizeof(events)) > 0;
  }

 private:
  const UniqueFd fd_;
};

class AskForDumpTest : public testing::Test {
 protected:
  AskForDumpTest() {
    EXPECT_EQ(mkfifo(pipe_.c_str(), 0600), 0);
    tree_.Write("file", "");
  }
  bool Ask(const std::string& path, uid_t owner = geteuid()) const {
    return AskForDump(tree_.root(), path, owner);
  }

  const TemporaryTree tree_;
  const std::string pipe_ = tree_.root() + "/pipe";
};

TEST_F(AskForDumpTest, WritesAByteIntoThePipe) {
  EXPECT_FALSE(Ask("/pipe")) << "nobody reads it";
  const UniqueFd reader(open(pipe_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_TRUE(Ask("/pipe"));
  char byte = 0;
  EXPECT_EQ(read(reader.get(), &byte, 1), 1);
  EXPECT_EQ(byte, '1');
}

// As root, opening a device of the job would act on it.
TEST_F(AskForDumpTest, OpensPipesOnly) {
  const OpenWatch watch(tree_.root() + "/file");
  EXPECT_FALSE(Ask("/file"));
  EXPECT_FALSE(watch.Saw());
  EXPECT_TRUE(UniqueFd(open((tree_.root() + "/file").c_str(), O_RDONLY | O_CLOEXEC)).valid());
  EXPECT_TRUE(watch.Saw()) << "it sees what is opened";
}

TEST_F(AskForDumpTest, APipeOfAnotherUserIsNotOpened) {
  const UniqueFd reader(open(pipe_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const OpenWatch watch(pipe_);
  EXPECT_FALSE(Ask("/pipe", geteuid() + 1));
  EXPECT_FALSE(watch.Saw());
}

TEST_F(AskForDumpTest, ALinkInTheLastPlaceIsNotFollowed) {
  tree_.Link("link", "/pipe");
  const UniqueFd reader(open(pipe_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_FALSE(Ask("/link"));
  EXPECT_FALSE(Ask("pipe"));
  EXPECT_FALSE(Ask("/none"));
}

}  // namespace
}  // namespace rollcall
