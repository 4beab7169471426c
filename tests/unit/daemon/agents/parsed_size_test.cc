// SPDX-License-Identifier: Apache-2.0
#include "daemon/agents/parsed_size.h"

#include <google/protobuf/arena.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <string>

#include "rollcall/v1/agent.pb.h"

namespace rollcall {
namespace {

std::optional<uint64_t> SizeOf(const std::string& bytes, int block = -1) {
  static const ParsedSize sizes(v1::AgentMessage::descriptor());
  google::protobuf::io::ArrayInputStream input(bytes.data(), static_cast<int>(bytes.size()), block);
  return sizes.Of(&input);
}

// What the message really takes: the arena's blocks, and the texts that are not in it.
uint64_t TakenBy(const std::string& bytes) {
  google::protobuf::Arena arena;
  auto* const message = google::protobuf::Arena::CreateMessage<v1::AgentMessage>(&arena);
  EXPECT_TRUE(message->ParseFromString(bytes));
  return std::max<uint64_t>(arena.SpaceUsed(), message->SpaceUsedLong());
}

// Field `number` with this content.
std::string Delimited(int number, const std::string& content) {
  std::string out;
  const auto varint = [&out](uint64_t value) {
    for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
    out += static_cast<char>(value);
  };
  varint(static_cast<uint64_t>(number) << 3 | 2);
  varint(content.size());
  return out + content;
}

std::string Times(int count, const std::string& part) {
  std::string out;
  for (int i = 0; i < count; ++i) out += part;
  return out;
}

constexpr int kTick = 2, kProcesses = 3, kCommunicators = 5, kSites = 6, kRecords = 28,
              kPosition = 2, kLaunches = 31;

std::string Tick(const std::string& content) { return Delimited(kTick, content); }
std::string InProcess(const std::string& content) { return Tick(Delimited(kProcesses, content)); }

struct Hostile {
  const char* name;
  std::string bytes;
};

// Each is small on the wire and large in memory.
const Hostile kHostile[] = {
    {"empty_processes", Tick(Times(5000, Delimited(kProcesses, "")))},
    {"empty_communicators", InProcess(Times(5000, Delimited(kCommunicators, "")))},
    {"communicators_with_empty_records",
     InProcess(Times(5000, Delimited(kCommunicators, Delimited(kRecords, ""))))},
    {"bytes_for_a_number", Tick(Times(5000, Delimited(1, "")))},
    {"a_fixed_number_for_a_varint", Tick(Times(5000, std::string("\x0d\0\0\0\0", 5)))},
    {"bytes_for_numbers_of_fixed_width",
     InProcess(Delimited(kCommunicators, Delimited(27, std::string(80000, '\xff'))))},
    {"empty_texts", InProcess(Times(5000, Delimited(kSites, "")))},
    {"zeros_packed",
     InProcess(Delimited(kCommunicators,
                         Delimited(kRecords, Delimited(kPosition, std::string(50000, '\0')))))},
};

class ParsedSizeTest : public testing::TestWithParam<Hostile> {};

TEST_P(ParsedSizeTest, IsNeverLessThanWhatTheMessageTakes) {
  const std::string& bytes = GetParam().bytes;
  const uint64_t taken = TakenBy(bytes);
  EXPECT_GT(taken, bytes.size());
  EXPECT_GE(SizeOf(bytes).value_or(0), taken);
  EXPECT_LE(SizeOf(bytes).value_or(0), 5 * taken);
  EXPECT_EQ(SizeOf(bytes, /*block=*/7), SizeOf(bytes));
}

INSTANTIATE_TEST_SUITE_P(Hostile, ParsedSizeTest, testing::ValuesIn(kHostile),
                         [](const auto& one) { return std::string(one.param.name); });

// An honest tick: eight ranks, some communicators with new records.
TEST(ParsedSizeOfTickTest, AnHonestTickCountsForAboutWhatItTakes) {
  v1::AgentMessage message;
  for (int rank = 0; rank < 8; ++rank) {
    v1::ProcessUpdate* const process = message.mutable_tick()->add_processes();
    process->mutable_identity()->set_job("train");
    for (int i = 0; i < 10; ++i) {
      v1::CommUpdate* const comm = process->add_communicators();
      comm->set_entered(8812);
      for (int call = 0; call < 30; ++call) {
        comm->mutable_records()->add_position(static_cast<uint64_t>(8800 + call));
        comm->mutable_records()->add_count(1 << 20);
        comm->mutable_records()->add_entered_delta_ns(1'000'000);
      }
    }
  }
  const std::string bytes = message.SerializeAsString();
  const uint64_t taken = TakenBy(bytes);
  EXPECT_GE(SizeOf(bytes).value_or(0), taken);
  EXPECT_LE(SizeOf(bytes).value_or(0), 4 * taken);
}

// Of the whole program. 0 if the allocator does not count.
uint64_t AllocatedNow() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

class AllocatedSizeTest : public testing::TestWithParam<Hostile> {};

// With all that the allocator adds, and blocks as the daemon has them.
TEST_P(AllocatedSizeTest, IsNoMoreThanWasCounted) {
  constexpr size_t kBlock = 64 << 10;
  google::protobuf::ArenaOptions options;
  options.start_block_size = options.max_block_size = kBlock;
  const uint64_t before = AllocatedNow();
  google::protobuf::Arena arena(options);
  auto* const message = google::protobuf::Arena::CreateMessage<v1::AgentMessage>(&arena);
  ASSERT_TRUE(message->ParseFromString(GetParam().bytes));
  const uint64_t after = AllocatedNow();
  if (after == 0) GTEST_SKIP() << "an allocator that does not count";
  EXPECT_GE(SizeOf(GetParam().bytes).value_or(0) + 3 * kBlock, after - before);
}

// Some elements more than an array has room for.
const Hostile kFull[] = {
    {"texts", InProcess(Times(8200, Delimited(kSites, std::string(16, 'a'))))},
    {"short_texts", InProcess(Times(8200, Delimited(kSites, "a")))},
    {"numbers",
     InProcess(Delimited(kCommunicators,
                         Delimited(kRecords, Delimited(kPosition, std::string(131'100, '\0')))))},
    {"messages", InProcess(Times(8200, Delimited(kCommunicators, "")))},
    {"small_messages", InProcess(Delimited(kCommunicators, Times(8200, Delimited(kLaunches, ""))))},
    {"unknown_texts", Tick(Times(8200, Delimited(1000, std::string(16, 'a'))))},
};

INSTANTIATE_TEST_SUITE_P(Full, AllocatedSizeTest, testing::ValuesIn(kFull),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(ParsedSizeOfTickTest, UnknownFieldsCount) {
  EXPECT_GE(SizeOf(Times(1000, Delimited(1000, ""))).value_or(0), 64'000u);
}

TEST(ParsedSizeOfTickTest, WhatIsNotAMessageHasNoSize) {
  EXPECT_FALSE(SizeOf("\xff").has_value());
  EXPECT_FALSE(SizeOf(Delimited(kTick, "").substr(0, 1)).has_value());
  EXPECT_FALSE(SizeOf("\x12\x7f\x1a").has_value());  // longer than it is
  EXPECT_FALSE(
      SizeOf(Tick("\x1a\x7f\x01")).has_value());  // an inner one, longer than its outer one
  EXPECT_FALSE(SizeOf("\x13\x14").has_value());   // a group
  EXPECT_TRUE(SizeOf("").has_value());
}

}  // namespace
}  // namespace rollcall
