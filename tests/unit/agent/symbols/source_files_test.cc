// SPDX-License-Identifier: Apache-2.0
// Reads the sources that a process names, and no others.
#include "agent/symbols/source_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

class SourceFilesTest : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = absl::StrCat(testing::TempDir(), "/source_", getpid(), "_", name);
    std::ofstream(path) << text;
    return path;
  }

  bool Finds(const std::string& path) {
    std::vector<SourceBlock> blocks;
    int32_t returns_at = 0;
    return sources_.FindBlocks(path, 2, &blocks, &returns_at) && blocks.size() == 1 &&
           blocks[0].first == 1;
  }

  ModuleFiles files_;
  SourceFiles sources_{"/proc", getpid(), files_};
};

TEST_F(SourceFilesTest, FindsTheLoopAroundALine) {
  EXPECT_TRUE(Finds(Write("train.py", "for x in y:\n    step(x)\n")));
}

TEST_F(SourceFilesTest, ReadsPythonOnly) {
  EXPECT_FALSE(Finds(Write("train.txt", "for x in y:\n    step(x)\n")));
  EXPECT_FALSE(Finds("train.py"));
  EXPECT_FALSE(Finds("/no/such/train.py"));
  EXPECT_FALSE(Finds(testing::TempDir()));
}

TEST_F(SourceFilesTest, OpensNoPipe) {
  const std::string path = absl::StrCat(testing::TempDir(), "/pipe_", getpid(), ".py");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(Finds(path));
}

TEST_F(SourceFilesTest, ReadsNoLargeFile) {
  EXPECT_FALSE(Finds(
      Write("large.py", absl::StrCat("for x in y:\n    step(x)\n", std::string(2 << 20, '#')))));
}

TEST_F(SourceFilesTest, OpensNoFileThatIsLeftOut) {
  const std::string path = Write("slow.py", "for x in y:\n    step(x)\n");
  files_.LeaveOut({~uint64_t{0}}, {});
  EXPECT_FALSE(Finds(path));
}

}  // namespace
}  // namespace rollcall
