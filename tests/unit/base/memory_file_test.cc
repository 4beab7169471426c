// SPDX-License-Identifier: Apache-2.0
#include "base/memory_file.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <fstream>

#include "base/read_file.h"

namespace rollcall {
namespace {

std::string Read(const std::string& path) { return ReadFile(path).value_or(""); }

TEST(MemoryFileTest, ThePathStaysAndTheContentChanges) {
  MemoryFile file;
  EXPECT_EQ(file.path(), "");
  ASSERT_TRUE(file.Replace("one").ok());
  const std::string path = file.path();
  EXPECT_EQ(Read(path), "one");
  EXPECT_EQ(Read(path), "one");
  ASSERT_TRUE(file.Replace("two, and longer").ok());
  EXPECT_EQ(file.path(), path);
  EXPECT_EQ(Read(path), "two, and longer");
}

TEST(MemoryFileTest, AReaderKeepsTheContentThatItHasOpened) {
  MemoryFile file;
  ASSERT_TRUE(file.Replace("one").ok());
  std::ifstream reader(file.path());
  ASSERT_TRUE(file.Replace("two").ok());
  std::string text;
  reader >> text;
  EXPECT_EQ(text, "one");
}

// A program with file capabilities is not dumpable: its /proc/PID belongs to root.
TEST(MemoryFileTest, AProcessThatNoOtherMayTraceReadsItsOwn) {
  ASSERT_EQ(prctl(PR_SET_DUMPABLE, 0), 0);
  MemoryFile file;
  ASSERT_TRUE(file.Replace("one").ok());
  EXPECT_EQ(Read(file.path()), "one");
  ASSERT_TRUE(file.Replace("two").ok());
  EXPECT_EQ(Read(file.path()), "two");
  EXPECT_EQ(prctl(PR_SET_DUMPABLE, 1), 0);
}

TEST(MemoryFileTest, EachContentHasItsOwnTime) {
  MemoryFile file;
  struct stat one, two;
  ASSERT_TRUE(file.Replace("one").ok());
  ASSERT_EQ(stat(file.path().c_str(), &one), 0);
  ASSERT_TRUE(file.Replace("two").ok());
  ASSERT_EQ(stat(file.path().c_str(), &two), 0);
  EXPECT_LT(one.st_mtime, two.st_mtime);
  EXPECT_EQ(two.st_mode & 07777, 0600u);
}

}  // namespace
}  // namespace rollcall
