// SPDX-License-Identifier: Apache-2.0
#include "agent/collector/segment_files.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/durations.h"
#include "collector_fixture.h"

namespace rollcall {
namespace {

constexpr uint64_t kNextScan = 5;

class SegmentFilesTest : public CollectorTest {
 protected:
  void SetUp() override {
    CollectorTest::SetUp();
    threads_ = std::make_shared<SpareThreads>(60 * kSecond);  // on a busy machine
    segments_ = std::make_unique<SegmentFiles>(
        SegmentFiles::Options{folder_, false, "too many segments"}, threads_, &faults_);
    segment_.AddComm(5, 0, 2);
  }
  bool Look(int64_t now_ns, bool has_room = true) {
    return segments_->Look(now_ns, kNextScan, [has_room] { return has_room; });
  }
  // Takes the file that waits, as if its process were found.
  std::shared_ptr<SegmentReader> Settle() {
    EXPECT_EQ(segments_->CountWaiting(), 1u);
    auto file = segments_->waiting()->begin();
    std::shared_ptr<SegmentReader> reader = file->second.reader;
    segments_->SetKnown(file->first, reader);
    segments_->waiting()->erase(file);
    return reader;
  }

  FaultLog faults_;
  std::shared_ptr<SpareThreads> threads_;
  std::unique_ptr<SegmentFiles> segments_;
};

TEST_F(SegmentFilesTest, OpensEachFileOnceAndKeepsItUntilItsProcessIsFound) {
  const Child child;
  WriteSegment(child, &segment_);
  EXPECT_TRUE(Look(1 * kSecond));
  EXPECT_TRUE(segments_->IsBehind());
  EXPECT_FALSE(Look(2 * kSecond));
  EXPECT_EQ(segments_->waiting()->begin()->second.settled_by, kNextScan);
  const auto reader = Settle();
  EXPECT_FALSE(Look(3 * kSecond));
  EXPECT_FALSE(segments_->IsBehind());
}

TEST_F(SegmentFilesTest, OpensTheNewFileOfAKnownNameAfterExec) {
  const Child child;
  WriteSegment(child, &segment_);
  Look(1 * kSecond);
  const auto old = Settle();
  std::filesystem::remove(SegmentPath(&segment_));
  WriteSegment(child, &segment_);
  EXPECT_TRUE(Look(2 * kSecond));
  EXPECT_NE(Settle()->file().inode(), old->file().inode());
}

TEST_F(SegmentFilesTest, CountsAFileWithoutRoomAndTriesItAgainAfterAWhile) {
  const Child child;
  WriteSegment(child, &segment_);
  EXPECT_FALSE(Look(1 * kSecond, /*has_room=*/false));
  EXPECT_EQ(segments_->CountLeftOut(), 1u);
  EXPECT_FALSE(Look(2 * kSecond));
  EXPECT_TRUE(Look(11 * kSecond));
  Settle();
  EXPECT_EQ(segments_->CountLeftOut(), 0u);
}

TEST_F(SegmentFilesTest, DeletesAFileOnlyAfterItsLifeLockIsFree) {
  const Child child;
  segment_.header()->life_lock = 1;
  WriteSegment(child, &segment_);
  LifeLock lock(SegmentPath(&segment_));
  Look(1 * kSecond);
  const std::string name = segments_->waiting()->begin()->first;
  const SegmentClaim claim = segments_->waiting()->begin()->second.claim;
  const auto reader = Settle();
  EXPECT_TRUE(segments_->Delete(name, reader, claim, claim.pid_namespace));
  EXPECT_TRUE(std::filesystem::exists(SegmentPath(&segment_)));
  lock.Release();
  EXPECT_TRUE(segments_->Delete(name, reader, claim, claim.pid_namespace));
  EXPECT_FALSE(std::filesystem::exists(SegmentPath(&segment_)));
}

}  // namespace
}  // namespace rollcall
