#include "agent/segment_reader.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <random>

#include "segment_builder.h"

namespace rollcall {
namespace {

namespace fs = std::filesystem;

class SegmentReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/rollcall-reader-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    scratch_ = path;
    path_ = scratch_ / "4121-88.seg";
  }
  void TearDown() override { fs::remove_all(scratch_); }

  absl::StatusOr<SegmentSnapshot> ReadAll() {
    auto reader = SegmentReader::Open(path_);
    if (!reader.ok()) return reader.status();
    return (*reader)->Read();
  }

  fs::path scratch_, path_;
  SegmentBuilder segment_;
};

TEST_F(SegmentReaderTest, GivesWhatWasWritten) {
  const uint32_t comm = segment_.AddComm(0xabc, 1, 4);
  segment_.AddAllReduce(comm, 5000, 64);
  segment_.Write(path_);
  const auto snapshot = ReadAll();
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  ASSERT_EQ(snapshot->communicators.size(), 1u);
  const CommSnapshot& read = snapshot->communicators[0];
  EXPECT_EQ(read.id, 0xabcu);
  EXPECT_EQ(read.rank, 1);
  ASSERT_EQ(read.records.size(), 1u);
  EXPECT_EQ(read.records[0].count, 64u);
  EXPECT_EQ(read.records[0].entered_ns, static_cast<int64_t>(SegmentBuilder::kBaseNs) + 4000);
}

TEST_F(SegmentReaderTest, GivesAReturnedRecordOnce) {
  const uint32_t comm = segment_.AddComm(1, 0, 2);
  segment_.AddAllReduce(comm, 5000);
  segment_.Write(path_);
  auto reader = SegmentReader::Open(path_);
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ((*reader)->Read()->communicators[0].records.size(), 1u);
  EXPECT_EQ((*reader)->Read()->communicators[0].records.size(), 0u);
  (*reader)->StartOver();
  EXPECT_EQ((*reader)->Read()->communicators[0].records.size(), 1u);
}

TEST_F(SegmentReaderTest, GivesAnOpenRecordUntilItHasReturned) {
  const uint32_t comm = segment_.AddComm(1, 0, 2);
  segment_.AddAllReduce(comm, 5000);
  segment_.record(comm, 0)->returned = 0;
  segment_.Write(path_);
  auto reader = SegmentReader::Open(path_);
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ((*reader)->Read()->communicators[0].records.size(), 1u);
  EXPECT_EQ((*reader)->Read()->communicators[0].records.size(), 1u);
}

TEST_F(SegmentReaderTest, LeavesOutARecordThatIsBeingWritten) {
  const uint32_t comm = segment_.AddComm(1, 0, 2);
  segment_.AddAllReduce(comm, 5000);
  segment_.AddAllReduce(comm, 6000);
  segment_.record(comm, 1)->seq = 3;
  segment_.Write(path_);
  EXPECT_EQ(ReadAll()->communicators[0].records.size(), 1u);
}

TEST_F(SegmentReaderTest, CountsOverwrittenRecords) {
  const uint32_t comm = segment_.AddComm(1, 0, 2);
  for (uint64_t i = 0; i < segment::kRingCapacity + 100; ++i) segment_.AddAllReduce(comm, 5000 + i);
  segment_.Write(path_);
  const auto snapshot = ReadAll();
  const CommSnapshot& read = snapshot->communicators[0];
  EXPECT_EQ(read.records_lost, 100u);
  EXPECT_EQ(read.records.size(), segment::kRingCapacity);
  EXPECT_EQ(read.records.front().index, 100u);
}

TEST_F(SegmentReaderTest, TakesTheGreatestOfTheMarkerLanes) {
  const uint32_t comm = segment_.AddComm(1, 0, 2);
  for (int i = 0; i < 9; ++i) segment_.AddAllReduce(comm, 5000);
  segment_.entry(comm)->flags = segment::kFlagRing | segment::kFlagMarkers;
  auto* lanes = reinterpret_cast<segment::MarkerLane*>(
      segment_.bytes().data() + segment::CommBlockOffset(comm) + segment::kMarkersOffset);
  lanes[1].started = 7;
  lanes[3].started = 9;
  lanes[1].finished = 6;
  lanes[2].finished = 1000;  // more than was ever entered
  segment_.Write(path_);
  const CommSnapshot read = ReadAll()->communicators[0];
  EXPECT_EQ(read.started, 9u);
  EXPECT_EQ(read.finished, 9u);
}

TEST_F(SegmentReaderTest, RefusesWhatIsNoSegment) {
  segment_.header()->magic = 0;
  segment_.Write(path_);
  EXPECT_EQ(ReadAll().status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(SegmentReaderTest, RefusesAnotherLayoutAndSaysWhich) {
  segment_.header()->layout_version = 7;
  segment_.Write(path_);
  const auto snapshot = ReadAll();
  EXPECT_EQ(snapshot.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(snapshot.status().message()).find("layout 7"), std::string::npos);
}

TEST_F(SegmentReaderTest, RefusesWhatIsNoRegularFile) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_FALSE(SegmentReader::Open(path_).ok());
  fs::remove(path_);
  fs::create_directory(path_);
  EXPECT_FALSE(SegmentReader::Open(path_).ok());
  fs::remove(path_);
  segment_.Write(scratch_ / "elsewhere");
  fs::create_symlink(scratch_ / "elsewhere", path_);
  EXPECT_FALSE(SegmentReader::Open(path_).ok());
}

TEST_F(SegmentReaderTest, ReadsAsFarAsATruncatedFileGoes) {
  segment_.AddComm(1, 0, 2);
  segment_.AddComm(2, 0, 2);
  segment_.Write(path_);
  for (size_t size : {size_t{0}, size_t{100}, size_t{4096}, segment::kHeaderBytes - 1}) {
    fs::resize_file(path_, size);
    EXPECT_EQ(ReadAll().status().code(), absl::StatusCode::kDataLoss) << size;
    segment_.Write(path_);
  }
  fs::resize_file(path_, segment::CommBlockOffset(1) + 10);
  const auto snapshot = ReadAll();
  ASSERT_TRUE(snapshot.ok());
  EXPECT_EQ(snapshot->communicators.size(), 1u);
  EXPECT_EQ(snapshot->notes.size(), 1u);
}

TEST_F(SegmentReaderTest, LeavesOutACommunicatorThatMakesNoSense) {
  segment_.AddComm(1, 9, 4);
  segment_.AddComm(2, 0, 4);
  segment_.Write(path_);
  const auto snapshot = ReadAll();
  ASSERT_EQ(snapshot->communicators.size(), 1u);
  EXPECT_EQ(snapshot->communicators[0].id, 2u);
  EXPECT_EQ(snapshot->notes.size(), 1u);
}

TEST_F(SegmentReaderTest, MakesTextPrintable) {
  memcpy(segment_.header()->host, "no\x1b[31mde\xff", 10);
  segment_.Write(path_);
  EXPECT_EQ(ReadAll()->host, "no?[31mde?");
}

// Whatever the bytes, what comes out is in range, and nothing crashes.
TEST_F(SegmentReaderTest, SurvivesRandomBytes) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 400; ++round) {
    SegmentBuilder builder;
    for (int i = 0; i < 2; ++i) {
      const uint32_t comm = builder.AddComm(random(), 0, 2);
      for (int n = 0; n < 20; ++n) builder.AddAllReduce(comm, 5000);
    }
    // Sparse in one half of the rounds, dense in the other; the magic is spared,
    // or no round would get beyond it.
    const size_t changes = round % 2 == 0 ? 20 : 20000;
    const size_t begin = round % 4 < 2 ? 150 : segment::kHeaderBytes;
    std::vector<char>& bytes = builder.bytes();
    for (size_t i = 0; i < changes; ++i) {
      bytes[begin + random() % (bytes.size() - begin)] = static_cast<char>(random());
    }
    builder.Write(path_);
    const auto snapshot = ReadAll();
    if (!snapshot.ok()) continue;
    for (const CommSnapshot& comm : snapshot->communicators) {
      EXPECT_TRUE(comm.size == 0 || comm.rank < comm.size);
      EXPECT_LE(comm.started, comm.entered);
      EXPECT_LE(comm.records.size(), segment::kRingCapacity);
    }
  }
}

TEST(SegmentNameTest, IsPidAndStartTime) {
  EXPECT_TRUE(IsSegmentName("4121-88012345.seg"));
  for (const char* name : {"", ".seg", "4121.seg", "-5.seg", "a-5.seg", "4-5.se", "4-5.seg.old"}) {
    EXPECT_FALSE(IsSegmentName(name)) << name;
  }
}

}  // namespace
}  // namespace rollcall
