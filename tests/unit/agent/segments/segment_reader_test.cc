// SPDX-License-Identifier: Apache-2.0
#include "agent/segments/segment_reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <random>
#include <thread>

#include "interpose/segment_messages.h"
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

TEST_F(SegmentReaderTest, ReadsTheWrittenFields) {
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

TEST_F(SegmentReaderTest, ReadsTheMessagesThatCanBe) {
  const uint32_t comm = segment_.AddComm(0xabc, 1, 4);
  segment_.entry(comm)->flags |= segment::kFlagHostCalls | segment::kFlagMessages;
  auto* table = reinterpret_cast<segment::MessageTable*>(segment_.lane(comm, 0));
  table->lost = 2;
  const auto set = [table](int i, int32_t peer, int32_t tag) {
    table->entries[i].key = segment::MessageKey(peer, tag);
    table->entries[i].sends = 5;
    table->entries[i].receives_awaited = 1;
  };
  set(9, 3, 7);
  set(2, 0, segment::kMixedTags);
  set(5, segment::kAnySource, segment::kAnyTag);
  set(6, 4, 7);            // no rank of the communicator
  set(7, 2, -2000000000);  // no tag
  segment_.Write(path_);
  const auto snapshot = ReadAll();
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  const CommSnapshot& read = snapshot->communicators.at(0);
  ASSERT_EQ(read.messages.size(), 3u);
  EXPECT_EQ(read.messages[0].peer, segment::kAnySource);
  EXPECT_EQ(read.messages[1].tag, segment::kMixedTags);
  EXPECT_EQ(read.messages[2].sends, 5u);
  EXPECT_EQ(read.messages[2].receives_awaited, 1u);
  EXPECT_TRUE(read.messages_lost);
  EXPECT_EQ(read.p2p_entered, 17u);
}

// A child of vfork that ends by exit() sets the mark in its parent's memory.
TEST_F(SegmentReaderTest, AnExitMarkLongBeforeTheNewestCallIsAnothers) {
  constexpr uint64_t kSecond = 1'000'000'000;
  const uint32_t comm = segment_.AddComm(0xabc, 1, 4);
  segment_.header()->exit_mark = 1;
  segment_.header()->exit_ticks = 5 * kSecond;
  segment_.AddAllReduce(comm, 6 * kSecond);
  segment_.Write(path_);
  EXPECT_TRUE(ReadAll()->exited) << "threads may call while the process ends";
  segment_.AddAllReduce(comm, 60 * kSecond);
  segment_.Write(path_);
  EXPECT_FALSE(ReadAll()->exited);
}

TEST_F(SegmentReaderTest, ReturnsACompletedRecordOnce) {
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

TEST_F(SegmentReaderTest, ReturnsAnOpenRecordUntilItIsCompleted) {
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

// In a folder with little room a communicator's ring is short, and the file ends with the ring.
TEST_F(SegmentReaderTest, ReadsAShortRingWhole) {
  constexpr uint64_t kShort = 64;
  const uint32_t comm = segment_.AddComm(1, 0, 2);
  segment_.entry(comm)->ring_capacity = kShort;
  for (uint64_t i = 0; i < 100; ++i) {
    segment_.AddAllReduce(comm, 5000 + i);
    memcpy(static_cast<void*>(segment_.record(comm, i % kShort)),
           static_cast<const void*>(segment_.record(comm, i)), sizeof(segment::RecordEntry));
  }
  segment_.bytes().resize(segment::CommBlockOffset(comm) + segment::kRingOffset +
                          kShort * sizeof(segment::RecordEntry));
  segment_.Write(path_);
  const CommSnapshot read = ReadAll()->communicators[0];
  ASSERT_EQ(read.records.size(), kShort);
  EXPECT_EQ(read.records.front().index, 100 - kShort);
  EXPECT_EQ(read.records.back().index, 99u);
  EXPECT_EQ(read.records_lost, 100 - kShort);
}

TEST_F(SegmentReaderTest, ReadsNoRecordsOfARingWithAnInvalidCapacity) {
  for (const uint32_t capacity : {3u, 513u, 1024u, 0xffffffffu}) {
    SegmentBuilder segment;
    const uint32_t comm = segment.AddComm(1, 0, 2);
    segment.AddAllReduce(comm, 5000);
    segment.entry(comm)->ring_capacity = capacity;
    segment.Write(path_);
    const auto snapshot = ReadAll();
    EXPECT_EQ(snapshot->communicators[0].entered, 1u) << capacity;
    EXPECT_TRUE(snapshot->communicators[0].records.empty()) << capacity;
  }
}

// A communicator without records takes two pages, and may be the last one in the file.
TEST_F(SegmentReaderTest, ReadsACommunicatorWithoutRecords) {
  const uint32_t comm = segment_.AddComm(1, 0, 2);
  segment_.AddAllReduce(comm, 5000);
  segment_.entry(comm)->flags = 0;
  segment_.bytes().resize(segment::CommBlockOffset(comm) + segment::kRingOffset);
  segment_.Write(path_);
  const auto snapshot = ReadAll();
  ASSERT_EQ(snapshot->communicators.size(), 1u);
  EXPECT_TRUE(snapshot->warnings.empty());
  EXPECT_EQ(snapshot->communicators[0].entered, 1u);
  EXPECT_TRUE(snapshot->communicators[0].records.empty());
}

TEST_F(SegmentReaderTest, TakesTheMaximumOfTheMarkerLanes) {
  const uint32_t comm = segment_.AddComm(1, 0, 2);
  for (int i = 0; i < 9; ++i) segment_.AddAllReduce(comm, 5000);
  segment_.entry(comm)->flags = segment::kFlagRing | segment::kFlagMarkers;
  auto* lanes = reinterpret_cast<segment::MarkerLane*>(
      segment_.bytes().data() + segment::CommBlockOffset(comm) + segment::kMarkersOffset);
  lanes[1].started = 7;
  lanes[3].started = 9;
  lanes[1].finished = 6;
  lanes[2].finished = 1000;  // more than the calls entered
  segment_.Write(path_);
  const CommSnapshot read = ReadAll()->communicators[0];
  EXPECT_EQ(read.started, 9u);
  EXPECT_EQ(read.finished, 9u);
}

TEST_F(SegmentReaderTest, RefusesAFileThatIsNotASegment) {
  segment_.header()->magic = 1;
  segment_.Write(path_);
  EXPECT_EQ(ReadAll().status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(SegmentReaderTest, DistinguishesAnIncompleteSegmentFromNoSegment) {
  segment_.header()->magic = 0;
  segment_.Write(path_);
  EXPECT_EQ(ReadAll().status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(SegmentReaderTest, RefusesAnotherLayoutAndReportsItsVersion) {
  segment_.header()->layout_version = 7;
  segment_.Write(path_);
  const auto snapshot = ReadAll();
  EXPECT_EQ(snapshot.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(snapshot.status().message()).find("layout 7"), std::string::npos);
}

TEST_F(SegmentReaderTest, RefusesAFileThatIsNotRegular) {
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

// The rest of the header is empty.
constexpr size_t kUsedHeaderBytes =
    segment::kBlockedOffset + segment::kBlockedCapacity * sizeof(segment::BlockedEntry);

TEST_F(SegmentReaderTest, ReadsAsFarAsATruncatedFileGoes) {
  segment_.AddComm(1, 0, 2);
  segment_.AddComm(2, 0, 2);
  segment_.Write(path_);
  for (size_t size : {size_t{0}, size_t{100}, size_t{4096}, kUsedHeaderBytes - 1}) {
    fs::resize_file(path_, size);
    EXPECT_EQ(ReadAll().status().code(), absl::StatusCode::kDataLoss) << size;
    segment_.Write(path_);
  }
  fs::resize_file(path_, segment::CommBlockOffset(1) + 10);
  const auto snapshot = ReadAll();
  ASSERT_TRUE(snapshot.ok());
  EXPECT_EQ(snapshot->communicators.size(), 1u);
  EXPECT_EQ(snapshot->warnings.size(), 1u);
}

TEST_F(SegmentReaderTest, LeavesOutAnInconsistentCommunicator) {
  segment_.AddComm(1, 9, 4);
  segment_.AddComm(2, 0, 4);
  segment_.Write(path_);
  const auto snapshot = ReadAll();
  ASSERT_EQ(snapshot->communicators.size(), 1u);
  EXPECT_EQ(snapshot->communicators[0].id, 2u);
  EXPECT_EQ(snapshot->warnings.size(), 1u);
}

TEST_F(SegmentReaderTest, MakesTextPrintable) {
  memcpy(segment_.header()->host, "no\x1b[31mde\xff", 10);
  segment_.Write(path_);
  EXPECT_EQ(ReadAll()->host, "no?[31mde?");
}

TEST_F(SegmentReaderTest, ReportsTheVersionOfOlderAndNewerLayouts) {
  for (const uint32_t version : {segment::kLayoutVersion - 1, segment::kLayoutVersion + 1}) {
    segment_.header()->layout_version = version;
    segment_.Write(path_);
    const absl::Status status = ReadAll().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(std::string(status.message()).find("layout " + std::to_string(version)),
              std::string::npos);
  }
}

TEST_F(SegmentReaderTest, SurvivesTruncationAtAnyOffset) {
  for (int comm = 0; comm < 3; ++comm) {
    segment_.AddComm(1, 0, 2);
    for (int i = 0; i < 20; ++i) segment_.AddAllReduce(static_cast<uint32_t>(comm), 5000);
  }
  const size_t whole = segment_.bytes().size();
  for (size_t size = whole; size > 0; size -= std::min<size_t>(size, 509)) {
    segment_.Write(path_);
    fs::resize_file(path_, size);
    const auto snapshot = ReadAll();
    if (size < kUsedHeaderBytes) {
      EXPECT_EQ(snapshot.status().code(), absl::StatusCode::kDataLoss) << size;
    } else {
      ASSERT_TRUE(snapshot.ok()) << size;
      EXPECT_EQ(snapshot->warnings.empty(), snapshot->communicators.size() == 3) << size;
    }
  }
}

// The file has the entry and lacks the ring: the reader returns the contents of the entry.
TEST_F(SegmentReaderTest, ACommunicatorWithTruncatedRecordsKeepsItsCounters) {
  segment_.AddAllReduce(segment_.AddComm(1, 0, 2), 5000);
  segment_.Write(path_);
  fs::resize_file(path_, segment::CommBlockOffset(0) + segment::kRingOffset + 10);
  const auto snapshot = ReadAll();
  ASSERT_TRUE(snapshot.ok());
  ASSERT_EQ(snapshot->communicators.size(), 1u);
  EXPECT_EQ(snapshot->communicators[0].entered, 1u);
  EXPECT_TRUE(snapshot->communicators[0].records.empty());
}

TEST_F(SegmentReaderTest, ReportsAnErrorForAFileThatShrinksWhileItIsOpen) {
  segment_.AddComm(1, 0, 2);
  segment_.Write(path_);
  auto reader = SegmentReader::Open(path_);
  ASSERT_TRUE(reader.ok());
  fs::resize_file(path_, 5000);
  EXPECT_EQ((*reader)->Read().status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(SegmentReaderTest, RefusesAHeaderWithOtherSizes) {
  const SegmentBuilder good;
  for (const size_t field : {12, 16, 20, 24, 28}) {  // header_bytes to checkpoint_interval
    segment_.bytes() = const_cast<SegmentBuilder&>(good).bytes();
    segment_.bytes()[field] ^= 4;
    segment_.Write(path_);
    EXPECT_EQ(ReadAll().status().code(), absl::StatusCode::kInvalidArgument) << field;
  }
}

TEST_F(SegmentReaderTest, LeavesOutARankWithoutASize) {
  segment_.AddComm(1, 5, 0);
  segment_.Write(path_);
  const auto snapshot = ReadAll();
  EXPECT_TRUE(snapshot->communicators.empty());
  EXPECT_EQ(snapshot->warnings.size(), 1u);
}

TEST_F(SegmentReaderTest, ReadsAPendingSplitThatHasOnlyTheParentsRank) {
  const uint32_t comm = segment_.AddComm(1, -1, 0);
  segment_.entry(comm)->state = static_cast<uint32_t>(segment::CommState::kInitializing);
  segment_.entry(comm)->split_id = 9;
  segment_.entry(comm)->parent_rank = 3;
  segment_.entry(comm)->parent_size = 4;
  segment_.Write(path_);
  EXPECT_EQ(ReadAll()->communicators.size(), 1u);
  segment_.entry(comm)->parent_rank = 4;
  segment_.Write(path_);
  EXPECT_TRUE(ReadAll()->communicators.empty());
}

TEST_F(SegmentReaderTest, TimesOfADamagedClockStayWithinTheirLimits) {
  const uint32_t comm = segment_.AddComm(1, 0, 2);
  segment_.AddAllReduce(comm, 5000);
  for (const uint64_t base : {~uint64_t{0}, uint64_t{1} << 63, (uint64_t{1} << 63) - 1}) {
    segment_.header()->first_clock.realtime_ns = base;
    for (const uint64_t tick : {uint64_t{1}, uint64_t{1} << 61, ~uint64_t{0}}) {
      segment_.record(comm, 0)->entered = tick;
      segment_.Write(path_);
      const auto snapshot = ReadAll();
      const RecordSnapshot& record = snapshot->communicators[0].records[0];
      // A difference of two times must not overflow.
      for (const int64_t ns : {record.entered_ns, record.returned_ns, snapshot->newest_ns}) {
        EXPECT_GE(ns, 0);
        EXPECT_LT(ns, int64_t{1} << 62);
      }
    }
  }
}

// A record that the process overwrites during the copy must be returned unchanged or not at all.
// All of its fields are functions of its index.
TEST_F(SegmentReaderTest, NeverMixesTwoRecords) {
  const uint32_t comm = segment_.AddComm(1, 0, 2);
  segment_.Write(path_);
  const int fd = open(path_.c_str(), O_RDWR);
  auto* memory = static_cast<char*>(
      mmap(nullptr, segment_.bytes().size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  close(fd);
  ASSERT_NE(memory, MAP_FAILED);
  auto* entry = reinterpret_cast<segment::CommEntry*>(memory + segment::CommBlockOffset(comm));
  auto* ring = reinterpret_cast<segment::RecordEntry*>(memory + segment::CommBlockOffset(comm) +
                                                       segment::kRingOffset);
  std::atomic<int> reads{0};
  std::atomic<bool> done{false};
  std::thread writer([&] {
    std::mt19937 random(1);
    // One burst for each read: at full speed no record would stay readable.
    for (uint64_t n = 0, burst_end = 0; !done; ++n) {
      if (n >= burst_end) {
        burst_end = n + random() % 600;
        for (const int before = reads; !done && reads == before;) std::this_thread::yield();
      }
      segment::RecordEntry* record = &ring[n % segment::kRingCapacity];
      // An acquire keeps later stores behind it. ThreadSanitizer does not support fences.
      record->seq.exchange(static_cast<uint32_t>(2 * n + 1), std::memory_order_acq_rel);
      record->count = n;
      record->caller = 3 * n;
      record->entered = 1000 + n;
      record->position = static_cast<uint32_t>(n);
      record->returned.store(1000 + n, std::memory_order_relaxed);
      record->seq.store(static_cast<uint32_t>(2 * n + 2), std::memory_order_release);
      entry->recorded.store(n + 1, std::memory_order_release);
      entry->entered.store(n + 1, std::memory_order_release);
      entry->returned.store(n + 1, std::memory_order_release);
    }
  });
  auto reader = SegmentReader::Open(path_);
  size_t given = 0, wrong = 0;
  for (int round = 0; round < 500 || (given == 0 && round < 1'000'000); ++round) {
    ++reads;
    const auto snapshot = (*reader)->Read();
    for (const RecordSnapshot& record : snapshot->communicators[0].records) {
      const bool whole = record.count == record.index && record.caller == 3 * record.index &&
                         record.position == record.index;
      wrong += !whole;
      ++given;
    }
  }
  done = true;
  writer.join();
  munmap(memory, segment_.bytes().size());
  EXPECT_GT(given, 0u);
  EXPECT_EQ(wrong, 0u);
}

// For any bytes, the results are within their limits and the reader does not crash. Each test has
// one seed, so that its name repeats a failure.
class RandomBytesTest : public SegmentReaderTest, public testing::WithParamInterface<int> {
 protected:
  static void CheckRanges(const SegmentSnapshot& snapshot) {
    EXPECT_GE(snapshot.global_rank, -1);
    EXPECT_GE(snapshot.newest_ns, 0);
    for (const CommSnapshot& comm : snapshot.communicators) {
      const bool splitting = comm.split_id != 0;
      EXPECT_TRUE(splitting || (comm.rank >= 0 && comm.rank < comm.size))
          << comm.rank << " of " << comm.size;
      EXPECT_TRUE(!splitting || (comm.parent_rank >= 0 && comm.parent_rank < comm.parent_size));
      EXPECT_TRUE(comm.size == 0 || comm.rank < comm.size);
      EXPECT_LE(comm.started, comm.entered);
      EXPECT_LE(comm.finished, comm.entered);
      EXPECT_LE(comm.records.size(), segment::kRingCapacity);
      for (const RecordSnapshot& record : comm.records) EXPECT_GE(record.entered_ns, 0);
    }
  }
};

TEST_P(RandomBytesTest, AreSurvived) {
  std::mt19937_64 random(static_cast<uint64_t>(GetParam()));
  for (int round = 0; round < 500; ++round) {
    SegmentBuilder builder;
    for (int i = 0; i < 2; ++i) {
      const uint32_t comm = builder.AddComm(random(), 0, 2);
      for (int n = 0; n < 20; ++n) builder.AddAllReduce(comm, 5000);
    }
    // Damage few bytes in one half of the rounds, many in the other. Most rounds keep the fields
    // that Open() checks; otherwise no round would get past Open().
    const size_t changes = round % 2 == 0 ? 20 : 20000;
    const size_t begins[] = {0, offsetof(segment::SegmentHeader, host), 4096,
                             segment::kHeaderBytes};
    const size_t begin = begins[round / 2 % 4];
    // Entries are small in comparison to rings: every other time, damage only entries.
    const size_t end = round % 8 < 4 ? builder.bytes().size()
                                     : segment::CommBlockOffset(0) + sizeof(segment::CommEntry);
    for (size_t i = 0; i < changes; ++i) {
      builder.bytes()[begin + random() % (end - begin)] = static_cast<char>(random());
    }
    builder.Write(path_);
    auto reader = SegmentReader::Open(path_);
    if (!reader.ok()) continue;
    for (int again = 0; again < 2; ++again) {
      const auto snapshot = (*reader)->Read();
      if (snapshot.ok()) CheckRanges(*snapshot);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomBytesTest, testing::Range(1, 7));

TEST(SegmentNameTest, IsPidAndStartTime) {
  EXPECT_TRUE(IsSegmentName("4121-88012345.seg"));
  EXPECT_TRUE(IsSegmentName("4121-88012345-1.seg"));  // another process has the first name
  for (const char* name : {"4-5-.seg", "4--5.seg", "4-5-6-7.seg", "", ".seg", "4121.seg", "-5.seg",
                           "4-.seg", "a-5.seg", "4-5.se", "4-5.seg.old"}) {
    EXPECT_FALSE(IsSegmentName(name)) << name;
  }
}

}  // namespace
}  // namespace rollcall
