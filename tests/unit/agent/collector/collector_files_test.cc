// SPDX-License-Identifier: Apache-2.0
// Segment files that a collector cannot read, cannot read yet, or leaves out.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/match.h"
#include "agent/collector/collector.h"
#include "base/durations.h"
#include "collector_fixture.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;

TEST_F(CollectorTest, ReportsUnreadableFilesOnceAndReadsTheOthers) {
  const Child child;
  segment_.AddComm(5, 0, 2);
  WriteSegment(child, &segment_);
  std::ofstream(folder_ / "1-2.seg") << "not a segment";
  std::ofstream(folder_ / "notes.txt") << "not a segment name";
  Collector collector(Options(/*live=*/false));
  EXPECT_EQ(collector.Collect(0, true).processes_size(), 1);
  const std::vector<std::string> warnings = collector.TakeWarnings();
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(absl::StrContains(warnings[0], "1-2.seg"));
  collector.Collect(0, true);
  EXPECT_TRUE(collector.TakeWarnings().empty());
}

TEST_F(CollectorTest, ReportsABadFileBesideAUserWithThousands) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const auto write_broken = [this](int number, uid_t owner) {
    const fs::path file = folder_ / (std::to_string(number) + "-2.seg");
    std::ofstream(file) << "not a segment";
    EXPECT_EQ(chown(file.c_str(), owner, owner), 0);
  };
  for (int i = 1; i <= 1200; ++i) write_broken(i, 4711);
  Collector collector(Options(/*live=*/false));
  collector.Collect(0, true);
  EXPECT_EQ(collector.TakeWarnings().size(), 750u);
  write_broken(5000, 0);
  collector.Collect(1, true);
  EXPECT_EQ(collector.TakeWarnings().size(), 1u);
}

TEST_F(CollectorTest, LeavesOutAndCountsSegmentsBeyondTheLimits) {
  segment_.AddAllReduce(segment_.AddComm(5, 0, 2), 5000);
  for (const int pid : {101, 102, 103}) {
    segment_.header()->pid = pid;
    segment_.Write(SegmentPath(&segment_));
  }
  CollectorOptions by_number = Options(/*live=*/false), by_bytes = by_number;
  by_number.most_segments = 2;
  by_bytes.most_segment_bytes = 2000;  // one segment takes about 1 KB
  for (const CollectorOptions& options : {by_number, by_bytes}) {
    Collector collector(options);
    for (int i = 0; i < 2; ++i) {
      const v1::Tick tick = collector.Collect(0, true);
      EXPECT_LT(tick.processes_size(), 3);
      EXPECT_GT(tick.processes_size(), 0);
      EXPECT_EQ(tick.processes_size() + static_cast<int>(tick.left_out_segments()), 3);
    }
    const std::vector<std::string> warnings = collector.TakeWarnings();
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_TRUE(absl::StrContains(warnings[0], "left out"));
  }
}

TEST_F(CollectorTest, TakesASegmentThatWasLeftOutWhenThereIsRoom) {
  Child first, second;
  CollectorOptions options = Options();
  options.most_segments = 1;
  options.keep_ended_ns = kSecond;
  Collector collector(options);
  segment_.AddComm(5, 0, 2);
  WriteSegment(first, &segment_);
  EXPECT_EQ(Only(collector.Collect(10 * kSecond, true)).pid(), first.pid());
  WriteSegment(second, &segment_);
  const v1::Tick full = collector.Collect(20 * kSecond, true);
  EXPECT_EQ(Only(full).pid(), first.pid());
  EXPECT_EQ(full.left_out_segments(), 1u);
  first.Exit(0);
  collector.Collect(30 * kSecond, true);
  collector.Collect(40 * kSecond, true);  // removes the segment of the ended process
  const v1::Tick free = collector.Collect(50 * kSecond, true);
  EXPECT_EQ(Only(free).pid(), second.pid());
  EXPECT_EQ(free.left_out_segments(), 0u);
}

TEST_F(CollectorTest, ReadsASegmentThatBecomesCompleteLater) {
  const Child child;
  segment_.AddComm(5, 0, 2);
  segment_.header()->magic = 0;
  WriteSegment(child, &segment_);
  Collector collector(Options());
  EXPECT_EQ(collector.Collect(10 * kSecond, false).processes_size(), 0);
  EXPECT_TRUE(collector.TakeWarnings().empty());
  segment_.header()->magic = segment::kMagic;
  segment_.Write(SegmentPath(&segment_));
  EXPECT_EQ(collector.Collect(11 * kSecond, false).processes_size(), 1);
}

// A process may be stopped or starved before its segment is complete.
TEST_F(CollectorTest, RetriesAnIncompleteSegmentWhileItsLockIsHeld) {
  const Child child;
  segment_.AddComm(5, 0, 2);
  segment_.header()->magic = 0;
  WriteSegment(child, &segment_);
  LifeLock lock(SegmentPath(&segment_));
  Collector collector(Options());
  for (int64_t second = 10; second < 100; ++second) {
    EXPECT_EQ(collector.Collect(second * kSecond, false).processes_size(), 0);
  }
  EXPECT_TRUE(collector.TakeWarnings().empty());
  segment_.header()->magic = segment::kMagic;
  segment_.Write(SegmentPath(&segment_));
  EXPECT_EQ(collector.Collect(200 * kSecond, false).processes_size(), 1);
}

TEST_F(CollectorTest, GivesUpAnIncompleteSegmentWhoseLockIsFree) {
  const Child child;
  segment_.header()->magic = 0;
  WriteSegment(child, &segment_);
  Collector collector(Options());
  collector.Collect(10 * kSecond, false);
  collector.Collect(13 * kSecond, false);
  EXPECT_EQ(collector.TakeWarnings().size(), 1u);
}

// There may be many such segments, and every attempt opens a file.
TEST_F(CollectorTest, RetriesAnOldIncompleteSegmentRarely) {
  const Child child;
  segment_.header()->magic = 0;
  WriteSegment(child, &segment_);
  LifeLock lock(SegmentPath(&segment_));
  Collector collector(Options());
  collector.Collect(10 * kSecond, false);
  collector.Collect(13 * kSecond, false);
  segment_.header()->magic = segment::kMagic;
  segment_.Write(SegmentPath(&segment_));
  EXPECT_EQ(collector.Collect(13 * kSecond + 1, false).processes_size(), 0);
  EXPECT_EQ(collector.Collect(20 * kSecond, false).processes_size(), 1);
}

TEST_F(CollectorTest, ReportsInconsistentContentsOnce) {
  const Child child;
  segment_.AddComm(5, /*rank=*/9, /*size=*/2);
  segment_.AddComm(6, 0, 2);
  WriteSegment(child, &segment_);
  Collector collector(Options());
  collector.Collect(kSecond, false);
  EXPECT_EQ(collector.TakeWarnings().size(), 1u);
  for (int i = 1; i < 5; ++i) {
    collector.Collect(kSecond + i, false);
    EXPECT_TRUE(collector.TakeWarnings().empty());
  }
}

TEST_F(CollectorTest, LeavesOutSegmentsOfAnEarlierBootAndReportsThemOnce) {
  const Child child;
  segment_.AddComm(5, 0, 2);
  segment_.BelongTo(child.pid(), child.start_time());
  segment_.header()->boot_id[0] = 'x';
  segment_.Write(SegmentPath(&segment_));
  Collector collector(Options());
  EXPECT_EQ(collector.Collect(kSecond, true).processes_size(), 0);
  EXPECT_EQ(collector.TakeWarnings().size(), 1u);
  EXPECT_EQ(collector.Collect(2 * kSecond, true).processes_size(), 0);
  EXPECT_TRUE(collector.TakeWarnings().empty());
  EXPECT_TRUE(fs::exists(SegmentPath(&segment_)));
}

}  // namespace
}  // namespace rollcall
