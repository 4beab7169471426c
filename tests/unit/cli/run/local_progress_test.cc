// SPDX-License-Identifier: Apache-2.0
// How long the ranks of this host have stood still, by their segments alone.
#include "cli/run/local_progress.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/durations.h"
#include "base/monotonic_clock.h"
#include "eventually.h"
#include "file_server.h"
#include "segment_builder.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kComm = 5;
constexpr int64_t kShort = kSecond / 4;

class LocalProgressTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/rollcall-local-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    folder_ = path;
    segment_.header()->global_rank = 3;
    comm_ = segment_.AddComm(kComm, 1, 2);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Name(int pid) const { return absl::StrCat(pid, "-88.seg"); }
  void Write(int pid) const { segment_.Write(folder_ / Name(pid)); }
  static int64_t StandsStillFor(const LocalProgress& progress, int64_t later_ns = 0) {
    return progress.StandsStillFor(RankRanges("3"), kComm, MonotonicNs() + later_ns);
  }

  const AllThreadsEnd threads_end_;
  fs::path folder_;
  SegmentBuilder segment_;
  uint32_t comm_ = 0;
};

TEST_F(LocalProgressTest, ARankStandsStillUntilItCalls) {
  Write(4121);
  const LocalProgress progress(folder_);
  EXPECT_TRUE(Eventually([&] { return StandsStillFor(progress) > kShort; }));
  EXPECT_EQ(progress.communicators(), std::set<uint64_t>{kComm});
  EXPECT_EQ(progress.pids(), std::set<pid_t>{4121});
  const int64_t calls_ns = MonotonicNs();
  segment_.AddAllReduce(comm_, 5000);
  Write(4121);
  // Now the standstill begins after the call, however late this test looks at it.
  EXPECT_TRUE(Eventually([&] { return StandsStillFor(progress) <= MonotonicNs() - calls_ns; }));
}

TEST_F(LocalProgressTest, AnOldReadingShowsNoStandstill) {
  Write(4121);
  const LocalProgress progress(folder_);
  EXPECT_TRUE(Eventually([&] { return StandsStillFor(progress) > kShort; }));
  EXPECT_EQ(StandsStillFor(progress, 3 * kSecond), 0);
}

TEST_F(LocalProgressTest, MoreSegmentsThanItReadsShowNoStandstill) {
  for (const int pid : {1, 2}) Write(pid);
  const LocalProgress both(folder_, 2), one(folder_, 1);
  EXPECT_TRUE(Eventually([&] { return StandsStillFor(both) > kShort; }));
  EXPECT_TRUE(Eventually([&] { return !one.communicators().empty(); }));
  EXPECT_EQ(StandsStillFor(one), 0);
}

TEST_F(LocalProgressTest, AFolderThatDoesNotAnswerDelaysNoCaller) {
  FileServer server(folder_, Name(4121), segment_.bytes());
  if (!server.problem().empty()) GTEST_SKIP() << server.problem();
  auto progress = std::make_unique<LocalProgress>(folder_);
  EXPECT_TRUE(Eventually([&] { return StandsStillFor(*progress) > kShort; }));
  server.StopAt(FUSE_READ);
  ASSERT_TRUE(Eventually([&] { return server.HasStopped(); }));
  EXPECT_TRUE(Eventually([&] { return StandsStillFor(*progress) == 0; })) << "the reading is old";
  progress = nullptr;
  EXPECT_TRUE(server.HasStopped()) << "the end of the object waited for the server";
  server.Kill();
}

}  // namespace
}  // namespace rollcall
