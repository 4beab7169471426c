// SPDX-License-Identifier: Apache-2.0
#include "base/open_regular.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/own_folder.h"
#include "tests/unit/support/temporary_tree.h"

namespace rollcall {
namespace {

class OpenRegularTest : public testing::Test {
 protected:
  std::string At(const std::string& name) const { return tree_.root() + "/" + name; }

  // The errno of an attempt to open this; 0 if it was opened.
  static int Try(const std::string& path) {
    errno = 0;
    return OpenRegular(path, O_RDONLY).valid() ? 0 : errno;
  }

  TemporaryTree tree_;
};

TEST_F(OpenRegularTest, OpensARegularFileAndSaysWhatItIs) {
  tree_.Write("file", "text");
  struct stat about;
  const UniqueFd fd = OpenRegular(At("file"), O_RDWR, &about);
  ASSERT_TRUE(fd.valid());
  EXPECT_EQ(about.st_size, 4);
  EXPECT_EQ(write(fd.get(), "T", 1), 1);
  EXPECT_NE(fcntl(fd.get(), F_GETFL) & O_NONBLOCK, 0);
}

TEST_F(OpenRegularTest, RefusesLinksPipesAndFolders) {
  tree_.Write("file", "");
  ASSERT_EQ(symlink(At("file").c_str(), At("link").c_str()), 0);
  ASSERT_EQ(mkfifo(At("pipe").c_str(), 0600), 0);
  EXPECT_EQ(Try(At("link")), EINVAL);
  EXPECT_EQ(Try(At("pipe")), EINVAL);
  EXPECT_EQ(Try(tree_.root()), EINVAL);
  EXPECT_EQ(Try(At("missing")), ENOENT);
}

// Opening a device without a driver is ENXIO: the refusal comes before the attempt.
TEST_F(OpenRegularTest, DoesNotEvenTryToOpenADevice) {
  if (mknod(At("device").c_str(), S_IFCHR | 0600, makedev(240, 77)) != 0) {
    GTEST_SKIP() << "only root may make a device";
  }
  EXPECT_EQ(Try(At("device")), EINVAL);
}

// A lease makes a process that opens the file wait until its owner gives it up, 45 s at most.
TEST_F(OpenRegularTest, DoesNotWaitForALease) {
  tree_.Write("file", "");
  const UniqueFd leased(open(At("file").c_str(), O_RDWR));
  struct sigaction ignore = {}, before = {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGIO, &ignore, &before);
  if (fcntl(leased.get(), F_SETLEASE, F_WRLCK) != 0) {
    GTEST_SKIP() << "this file system has no leases";
  }
  EXPECT_EQ(Try(At("file")), EWOULDBLOCK);
  sigaction(SIGIO, &before, nullptr);
}

TEST_F(OpenRegularTest, StaysInTheFolderThatIsOpen) {
  tree_.Write("folder/file", "right");
  tree_.Write("other/file", "wrong");
  const UniqueFd folder(open(At("folder").c_str(), O_PATH | O_DIRECTORY));
  ASSERT_EQ(rename(At("folder").c_str(), At("moved").c_str()), 0);
  ASSERT_EQ(symlink(At("other").c_str(), At("folder").c_str()), 0);
  char text[6] = "";
  const UniqueFd fd = OpenRegularAt(folder.get(), "file", O_RDONLY);
  ASSERT_EQ(read(fd.get(), text, 5), 5);
  EXPECT_STREQ(text, "right");
}

TEST_F(OpenRegularTest, AnOwnFolderIsMadeAndFoundAgain) {
  ASSERT_TRUE(OpenOwnFolder(At("own"), 0700).ok());
  EXPECT_TRUE(OpenOwnFolder(At("own"), 0700).ok());
}

TEST_F(OpenRegularTest, AFolderOfAnotherUserALinkAndAFileAreNotOwn) {
  ASSERT_EQ(symlink(tree_.root().c_str(), At("link").c_str()), 0);
  tree_.Write("file", "");
  EXPECT_EQ(OpenOwnFolder(At("link"), 0700).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(OpenOwnFolder(At("file"), 0700).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(OpenOwnFolder(At("no/such"), 0700).status().code(), absl::StatusCode::kUnavailable);
  ASSERT_EQ(mkdir(At("other").c_str(), 0777), 0);
  if (chown(At("other").c_str(), 65534, 65534) != 0) GTEST_SKIP() << "only root gives folders away";
  EXPECT_EQ(OpenOwnFolder(At("other"), 0700).status().message(),
            At("other") + " belongs to user 65534, not to 0");
}

}  // namespace
}  // namespace rollcall
