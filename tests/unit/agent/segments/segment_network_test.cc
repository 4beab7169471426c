// SPDX-License-Identifier: Apache-2.0
// Tests reading the states of transfers from segments that say anything. That the library's states
// are read is in tests/unit/interpose/library_network_test.cc.
#include "agent/segments/segment_network.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <random>
#include <string>

#include "agent/segments/segment_reader.h"
#include "base/unique_fd.h"
#include "interpose/segment_network.h"
#include "segment_builder.h"

namespace rollcall {
namespace {

using segment::NetworkTransfer;

constexpr uint64_t kGeneration = 1000;  // as SegmentBuilder's communicators have

NetworkEntryCopy Entry(const NetworkTransfer& transfer) {
  return {segment::NetworkKey(transfer),
          kGeneration,
          2000,
          5,
          3,
          0x0300'0000,
          2500,
          0};  // step 3: kSend
}
constexpr NetworkTransfer kTransfer = {7, 1, 2, true, false};

std::vector<NetworkSnapshot> Read(const std::vector<NetworkEntryCopy>& entries, int32_t size = 4) {
  const TickClock clock(segment::ClockSource::kMonotonic, {1000, 1000, 1'000'000});
  return ToNetworkSnapshots(entries, {{7, {0xabc, kGeneration, 1, size}}}, clock);
}

TEST(SegmentNetworkTest, AStateThatIsConsistentIsRead) {
  const std::vector<NetworkSnapshot> all = Read({Entry(kTransfer)});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].comm, 7u);
  EXPECT_EQ(all[0].communicator, 0xabcu);
  EXPECT_EQ(all[0].rank, 1);
  EXPECT_TRUE(all[0].is_whole);
  ASSERT_EQ(all[0].states.size(), 1u);
  const NetworkStateSnapshot& state = all[0].states[0];
  EXPECT_EQ(state.channel, 1);
  EXPECT_EQ(state.peer, 2);
  EXPECT_TRUE(state.sends);
  EXPECT_EQ(state.begun, 5u);
  EXPECT_EQ(state.ended, 3u);
  EXPECT_EQ(state.wait, NetworkWait::kSend);
  EXPECT_EQ(state.since_ns, 1'000'000 + 1500);
}

struct BadCase {
  const char* name;
  void (*damage)(NetworkEntryCopy* entry);
};
const BadCase kBadCases[] = {
    {"free", [](NetworkEntryCopy* entry) { entry->key = 0; }},
    {"unknown_communicator",
     [](NetworkEntryCopy* entry) { entry->key = segment::NetworkKey({8, 1, 2, true, false}); }},
    {"earlier_communicator", [](NetworkEntryCopy* entry) { entry->generation = 999; }},
    {"no_step", [](NetworkEntryCopy* entry) { entry->began = 0; }},
    {"no_peer",
     [](NetworkEntryCopy* entry) { entry->key = segment::NetworkKey({7, 1, -1, true, false}); }},
    {"peer_beyond",
     [](NetworkEntryCopy* entry) { entry->key = segment::NetworkKey({7, 1, 4, true, false}); }},
    {"unknown_bits", [](NetworkEntryCopy* entry) { entry->key |= uint64_t{1} << 58; }},
    {"not_used", [](NetworkEntryCopy* entry) { entry->key &= ~segment::kNetworkUsed; }},
    {"more_ended_than_begun", [](NetworkEntryCopy* entry) { entry->ended = 6; }},
    {"too_many_under_way", [](NetworkEntryCopy* entry) { entry->begun = 12; }},
    {"countless", [](NetworkEntryCopy* entry) { entry->begun = entry->ended = UINT64_MAX; }},
};

class BadNetworkTest : public testing::TestWithParam<BadCase> {};

TEST_P(BadNetworkTest, IsLeftOut) {
  NetworkEntryCopy entry = Entry(kTransfer);
  GetParam().damage(&entry);
  EXPECT_TRUE(Read({entry}).empty());
}

INSTANTIATE_TEST_SUITE_P(Cases, BadNetworkTest, testing::ValuesIn(kBadCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(SegmentNetworkTest, AnUnknownWaitDoesNotCount) {
  NetworkEntryCopy entry = Entry(kTransfer);
  entry.waits = 0xff00'0000;
  EXPECT_EQ(Read({entry})[0].states[0].wait, NetworkWait::kNone);
}

TEST(SegmentNetworkTest, OfTwoConnectionsTheOlderThatIsUnderWayIsShown) {
  NetworkEntryCopy collective = Entry(kTransfer);
  NetworkEntryCopy message = Entry({7, 1, 2, true, true});
  message.began = 2100;
  message.waits = 0x0100'0000;
  const std::vector<NetworkEntryCopy> one = {collective, message}, other = {message, collective};
  for (const auto& entries : {one, other}) {
    ASSERT_EQ(Read(entries)[0].states.size(), 1u);
    EXPECT_EQ(Read(entries)[0].states[0].wait, NetworkWait::kSend);
  }
  collective.ended = collective.begun;
  EXPECT_EQ(Read({collective, message})[0].states[0].wait, NetworkWait::kSendGpu);
  message.ended = message.begun = 9;
  EXPECT_EQ(Read({collective, message})[0].states[0].begun, 9u);  // the newer one
}

TEST(SegmentNetworkTest, AThousandStatesAreReadAndNoMore) {
  std::vector<NetworkEntryCopy> entries;
  for (int peer = 0; peer < 1100; ++peer) entries.push_back(Entry({7, 0, peer, true, false}));
  const std::vector<NetworkSnapshot> all = Read(entries, 1100);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].states.size(), kMostNetworkStates);
  EXPECT_FALSE(all[0].is_whole);
}

// A segment with entries in its first chunk.
class NetworkReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    const uint32_t comm = segment_.AddComm(0xabc, 1, 4);
    segment_.header()->network_chunks = 1;
    chunk_[0] = Entry({comm, 1, 2, true, false});
  }
  void TearDown() override { unlink(path_.c_str()); }

  // The file has holes, as the library's has.
  std::vector<NetworkSnapshot> ReadAll(size_t bytes = segment::kMappedBytes,
                                       const std::vector<uint64_t>* wanted = nullptr) {
    segment_.Write(path_);
    const UniqueFd file(open(path_.c_str(), O_RDWR | O_CLOEXEC));
    const size_t size = chunk_.size() * sizeof(chunk_[0]);
    EXPECT_EQ(pwrite(file.get(), chunk_.data(), size, segment::kNetworkOffset),
              static_cast<ssize_t>(size));
    EXPECT_EQ(ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
    auto reader = SegmentReader::Open(path_);
    EXPECT_TRUE(reader.ok()) << reader.status();
    return (*reader)->ReadNetwork(nullptr, 0, wanted);
  }

  const std::string path_ = testing::TempDir() + "/rollcall-network-" + std::to_string(getpid());
  SegmentBuilder segment_;
  std::vector<NetworkEntryCopy> chunk_ =
      std::vector<NetworkEntryCopy>(segment::kNetworkChunkEntries, NetworkEntryCopy());
};

TEST_F(NetworkReaderTest, ReadsChunksThatTheSegmentHas) {
  ASSERT_EQ(ReadAll().size(), 1u);
  EXPECT_TRUE(ReadAll()[0].is_whole);
  segment_.header()->network_chunks = 2;
  EXPECT_TRUE(ReadAll().empty());
  segment_.header()->network_chunks = 0xffffffff;
  EXPECT_EQ(ReadAll().size(), 1u);
}

TEST_F(NetworkReaderTest, OfMoreCommunicatorsThanTheLimitTheWantedOnesAreRead) {
  for (uint32_t i = 1; i <= kMostNetworkComms + 6; ++i) {
    chunk_[i] = Entry({segment_.AddComm(0x1000 + i, 1, 4), 1, 2, true, false});
  }
  EXPECT_EQ(ReadAll().size(), kMostNetworkComms);
  const std::vector<uint64_t> last = {0x1000 + kMostNetworkComms + 6, 0xabc};
  const std::vector<NetworkSnapshot> read = ReadAll(segment::kMappedBytes, &last);
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[0].communicator, last[1]);
  EXPECT_EQ(read[1].communicator, last[0]);
  const std::vector<uint64_t> none;
  EXPECT_TRUE(ReadAll(segment::kMappedBytes, &none).empty());
}

TEST_F(NetworkReaderTest, LossesMakeTheStatesIncomplete) {
  segment_.header()->lost_network_states = 1;
  EXPECT_FALSE(ReadAll()[0].is_whole);
}

TEST_F(NetworkReaderTest, ReadsNothingOfAnEndedOrDamagedCommunicator) {
  segment_.entry(0)->state = static_cast<uint32_t>(segment::CommState::kDestroyed);
  EXPECT_TRUE(ReadAll().empty());
  segment_.entry(0)->state = static_cast<uint32_t>(segment::CommState::kReady);
  segment_.entry(0)->rank = 4;
  EXPECT_TRUE(ReadAll().empty());
}

TEST_F(NetworkReaderTest, AFileThatEndsEarlyHasNoStates) {
  EXPECT_TRUE(ReadAll(segment::kNetworkOffset + 100).empty());
}

TEST_F(NetworkReaderTest, RandomEntriesStayWithinTheLimits) {
  std::minstd_rand random(1);
  for (int round = 0; round < 20; ++round) {
    for (size_t i = 0; i < segment::kNetworkChunkEntries; ++i) {
      NetworkEntryCopy entry =
          Entry({static_cast<uint32_t>(random() % 3), 1, static_cast<int32_t>(random() % 6),
                 random() % 2 == 0, random() % 2 == 0});
      auto* words = reinterpret_cast<uint64_t*>(&entry);
      words[random() % 8] = uint64_t{random()} << (random() % 40);
      chunk_[i] = entry;
    }
    for (const NetworkSnapshot& comm : ReadAll()) {
      EXPECT_LE(comm.states.size(), kMostNetworkStates);
      for (const NetworkStateSnapshot& state : comm.states) {
        EXPECT_LE(state.ended, state.begun);
        EXPECT_LT(state.peer, 4);
      }
    }
  }
}

}  // namespace
}  // namespace rollcall
