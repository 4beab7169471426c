// SPDX-License-Identifier: Apache-2.0
#include "agent/logs/log_tail.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"
#include "proto/look_limits.h"
#include "temporary_tree.h"

namespace rollcall {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST(LastLinesTest, AreWhatAScreenShows) {
  EXPECT_THAT(LastLines("one\ntwo\r\n\nthree"), ElementsAre("one", "two", "three"));
  EXPECT_THAT(LastLines("10%\r20%\r30%"), ElementsAre("30%"));
  EXPECT_THAT(LastLines("10%\r20%\r"), ElementsAre("20%"));
  EXPECT_THAT(LastLines("\x1b[31mred\n"), ElementsAre("?[31mred"));
  EXPECT_THAT(LastLines(""), IsEmpty());
}

TEST(LastLinesTest, HaveLimits) {
  std::string text;
  for (int i = 0; i < 100; ++i) absl::StrAppend(&text, "line ", i, "\n");
  EXPECT_THAT(LastLines(text), SizeIs(kMostLinesOfLog));
  EXPECT_EQ(LastLines(text).back(), "line 99");
  EXPECT_EQ(LastLines(std::string(1000, 'x'))[0].size(), kLongestLogLine);
}

TEST(WithoutTornKeyTest, ARestOfAKeyIsLeftOut) {
  constexpr char kRest[] = "MIIEow\n-----END RSA PRIVATE KEY-----\nstep 8\n";
  EXPECT_EQ(WithoutTornKey(kRest), "\nstep 8\n");
  const std::string whole = absl::StrCat("-----BEGIN RSA PRIVATE KEY-----\n", kRest);
  EXPECT_EQ(WithoutTornKey(whole), whole) << "a pattern hides it";
  EXPECT_EQ(WithoutTornKey("lQVY\n-----END PGP PRIVATE KEY BLOCK-----"), "");
  for (const char* text :
       {"step 8\n", "MIID\n-----END CERTIFICATE-----\n", "no PRIVATE KEY-----\n"}) {
    EXPECT_EQ(WithoutTornKey(text), text);
  }
}

// Of this process, by a descriptor.
std::optional<LogTail> TailOf(int fd) { return ReadLogTail("/proc", getpid(), fd); }

TEST(LogTailTest, IsTheEndOfTheFileThatTheProcessWrites) {
  const TemporaryTree tree;
  tree.Write("log", std::string(100'000, 'x') + "\nstep 7\nstep 8\n");
  const UniqueFd log(open((tree.root() + "/log").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  const auto tail = TailOf(log.get());
  ASSERT_TRUE(tail.has_value());
  EXPECT_EQ(tail->end, "step 7\nstep 8\n");
  EXPECT_EQ(tail->path, tree.root() + "/log");
  EXPECT_GT(tail->changed_ns, 0);
}

TEST(LogTailTest, OfAProgressBarThatEndsNoLineIsItsNewestPicture) {
  const TemporaryTree tree;
  std::string bar;
  for (int i = 0; i < 10'000; ++i) absl::StrAppend(&bar, "\rstep ", i);
  tree.Write("log", bar);
  const UniqueFd log(open((tree.root() + "/log").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  const auto tail = TailOf(log.get());
  ASSERT_TRUE(tail.has_value());
  EXPECT_THAT(LastLines(tail->end), ElementsAre("step 9999"));
}

// None of them is opened: a pipe would wait for its writer, and a terminal or a tape would act.
TEST(LogTailTest, WhatIsNotAFileOfTheProcessIsLeftAlone) {
  const TemporaryTree tree;
  tree.Write("empty", "");
  tree.Write("input", "secret\n");
  ASSERT_EQ(mkfifo((tree.root() + "/pipe").c_str(), 0600), 0);
  const UniqueFd pipe(open((tree.root() + "/pipe").c_str(), O_RDWR | O_CLOEXEC)),
      device(open("/dev/zero", O_RDWR | O_CLOEXEC)),
      empty(open((tree.root() + "/empty").c_str(), O_WRONLY | O_CLOEXEC)),
      input(open((tree.root() + "/input").c_str(), O_RDONLY | O_CLOEXEC)),
      kernels(open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC));
  for (const UniqueFd* fd : {&pipe, &device, &empty, &input, &kernels}) {
    ASSERT_TRUE(fd->valid());
    EXPECT_FALSE(TailOf(fd->get()).has_value());
  }
  EXPECT_FALSE(TailOf(9999).has_value());
}

// The process may change its descriptor between two looks at it: at the end, the descriptor leads
// to a file that root may read and the process may not.
TEST(LogTailTest, RootReadsNoFileThatTheProcessMayNotRead) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may read more than others";
  const TemporaryTree proc;
  proc.WriteSecret("secret", "of root\n");
  proc.Write("log", "step 7\n");
  proc.Write("7/status", "Uid:\t65534\t65534\t65534\t65534\nGid:\t65534\t65534\t65534\t65534\n");
  proc.Link("7/fd/1", proc.root() + "/secret");
  proc.Link("7/fd/2", proc.root() + "/log");
  EXPECT_FALSE(ReadLogTail(proc.root(), 7, 1).has_value());
  EXPECT_TRUE(ReadLogTail(proc.root(), 7, 2).has_value());
  EXPECT_TRUE(UniqueFd(open((proc.root() + "/secret").c_str(), O_RDONLY)).valid())
      << "the rights are back";
}

TEST(LogTailTest, NothingIsReadForAProcessWithSeveralUsers) {
  const TemporaryTree proc;
  proc.Write("log", "step 7\n");
  proc.Write("7/status", "Uid:\t1000\t0\t0\t0\nGid:\t100\t100\t100\t100\n");
  proc.Link("7/fd/1", proc.root() + "/log");
  EXPECT_FALSE(ReadLogTail(proc.root(), 7, 1).has_value());
}

}  // namespace
}  // namespace rollcall
