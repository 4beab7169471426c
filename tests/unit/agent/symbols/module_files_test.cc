// SPDX-License-Identifier: Apache-2.0
#include "agent/symbols/module_files.h"

#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <filesystem>

#include "temporary_tree.h"

namespace rollcall {
namespace {

class ModuleFilesTest : public testing::Test {
 protected:
  ModuleFilesTest() { tree_.Write("proc/7/status", ""); }

  // A small program at this place of the tree. Returns its inode.
  uint64_t CopyProgram(const std::string& file) const {
    tree_.Write(file, "");
    const std::string path = tree_.root() + "/" + file;
    std::filesystem::copy_file("/bin/true", path,
                               std::filesystem::copy_options::overwrite_existing);
    struct stat about;
    EXPECT_EQ(stat(path.c_str(), &about), 0);
    return about.st_ino;
  }

  bool Finds(uint64_t inode) const {
    ProcMap map;
    map.path = "/no-such-folder/lib/x.so";
    map.inode = inode;
    return ModuleFiles(tree_.root() + "/proc").Find(7, map).ok();
  }

  const TemporaryTree tree_;
};

TEST_F(ModuleFilesTest, AFileIsFoundInTheRootOfTheProcessAlsoWithAnotherInode) {
  const uint64_t inode = CopyProgram("proc/7/root/no-such-folder/lib/x.so");
  EXPECT_TRUE(Finds(inode));
  EXPECT_TRUE(Finds(inode + 1)) << "as on a stacked file system";
}

// After the process has ended, its path may lead to a file of another file system, which may have
// the same inode.
TEST_F(ModuleFilesTest, AfterTheProcessAFileOfAnotherDeviceIsAnother) {
  ProcMap map;
  map.inode = CopyProgram("host/x.so");
  map.path = tree_.root() + "/host/x.so";
  struct stat about;
  ASSERT_EQ(stat(map.path.c_str(), &about), 0);
  const auto finds = [&](uint64_t device) {
    map.device = device;
    return ModuleFiles(tree_.root() + "/proc").Find(8, map).ok();
  };
  struct statfs system;
  ASSERT_EQ(statfs(map.path.c_str(), &system), 0);
  const bool is_known =
      system.f_type != OVERLAYFS_SUPER_MAGIC && system.f_type != BTRFS_SUPER_MAGIC;
  EXPECT_TRUE(finds(about.st_dev));
  EXPECT_EQ(finds(about.st_dev + 1), !is_known);
}

// A container chooses its links, and with a file system of its own also the inode that it shows.
TEST_F(ModuleFilesTest, ALinkOfAContainerLeadsToNoFileOfTheHost) {
  const uint64_t inode = CopyProgram("host/x.so");
  tree_.Link("proc/7/root/no-such-folder/lib", tree_.root() + "/host");
  EXPECT_FALSE(Finds(inode + 1));
  EXPECT_FALSE(Finds(inode));
}

}  // namespace
}  // namespace rollcall
