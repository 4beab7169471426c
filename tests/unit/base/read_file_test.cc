// SPDX-License-Identifier: Apache-2.0
#include "base/read_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>

#include "base/unique_fd.h"

namespace rollcall {
namespace {

class ReadFileTest : public testing::Test {
 protected:
  ~ReadFileTest() override { unlink(path_.c_str()); }

  void Write(const std::string& content) { std::ofstream(path_) << content; }

  const std::string path_ = testing::TempDir() + "read_file_test." + std::to_string(getpid());
};

TEST_F(ReadFileTest, ReadsAllThatIsThere) {
  const std::string long_text(100'000, 'a');
  for (const std::string& text : {std::string(), std::string("a\0b\n", 4), long_text}) {
    Write(text);
    EXPECT_EQ(ReadFile(path_), text);
  }
}

TEST_F(ReadFileTest, EndsAtTheLimit) {
  Write(std::string(40'000, 'a') + "b");
  EXPECT_EQ(ReadFile(path_, 40'000), std::string(40'000, 'a'));
  EXPECT_EQ(ReadFile(path_, 40'001)->size(), 40'001u);
  EXPECT_EQ(ReadFile(path_, 0), "");
}

TEST_F(ReadFileTest, ErrnoSaysWhyNot) {
  EXPECT_FALSE(ReadFile(path_).has_value());
  EXPECT_EQ(errno, ENOENT);
  EXPECT_FALSE(ReadFile("/").has_value());
  EXPECT_EQ(errno, EISDIR);
}

TEST_F(ReadFileTest, ReadsAPipeToItsEnd) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const UniqueFd from(ends[0]);
  UniqueFd to(ends[1]);
  ASSERT_EQ(write(to.get(), "ab", 2), 2);
  EXPECT_EQ(ReadUpTo(from.get(), 1), "a");
  to = UniqueFd();
  EXPECT_EQ(ReadUpTo(from.get(), kNoLimit), "b");
}

}  // namespace
}  // namespace rollcall
