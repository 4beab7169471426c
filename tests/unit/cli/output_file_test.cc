// SPDX-License-Identifier: Apache-2.0
// What a flag names as its output: files, links, and places that are not files.
#include "cli/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/read_file.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;

std::string Read(const fs::path& path) { return ReadFile(path).value_or(""); }

class OutputFileTest : public testing::Test {
 protected:
  const TemporaryTree tree_;
  const fs::path folder_ = tree_.root();
};

TEST_F(OutputFileTest, ReplacesTheWholeFileKeepsItsModeAndLeavesNoOther) {
  const fs::path file = folder_ / "out.xml";
  ASSERT_TRUE(WriteOutputFile(file, "first and longer").ok());
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
  ASSERT_TRUE(WriteOutputFile(file, "second").ok());
  EXPECT_EQ(Read(file), "second");
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(OutputFileTest, AnErrorSaysWhichFileAndWhy) {
  EXPECT_EQ(WriteOutputFile("/proc/no/out.xml", "").message(),
            "cannot write /proc/no/out.xml: No such file or directory");
}

TEST_F(OutputFileTest, WritesThroughALinkAndKeepsIt) {
  fs::create_symlink("target", folder_ / "link");
  std::ofstream(folder_ / "target") << "old";
  ASSERT_TRUE(WriteOutputFile(folder_ / "link", "new").ok());
  EXPECT_EQ(Read(folder_ / "target"), "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
}

TEST_F(OutputFileTest, DoesNotWaitForTheReaderOfAFifo) {
  const fs::path fifo = folder_ / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_FALSE(WriteOutputFile(fifo, "text").ok());
  EXPECT_TRUE(fs::is_fifo(fifo));
}

TEST_F(OutputFileTest, APipeTakesATextThatIsLongerThanItself) {
  const fs::path fifo = folder_ / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const int reader = open(fifo.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_EQ(fcntl(reader, F_SETFL, 0), 0);
  size_t taken = 0;
  const std::string text(1 << 20, 'x');
  std::thread slow([&] {
    char some[4096];
    ssize_t size = 0;
    // Before the writer opens the pipe, a read finds its end.
    while (taken < text.size() && (size = read(reader, some, sizeof some)) >= 0)
      taken += size_t(size);
  });
  EXPECT_TRUE(WriteOutputFile(fifo, text).ok());
  slow.join();
  EXPECT_EQ(taken, text.size());
  close(reader);
}

}  // namespace
}  // namespace rollcall
