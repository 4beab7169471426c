// SPDX-License-Identifier: Apache-2.0
// Ranks return addresses on a made-up stack of x86-64. The memory is a table of code and one of
// words.
#include "agent/stacks/caller_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

namespace rollcall {
namespace {

constexpr uint64_t kCode = 0x401000;
constexpr uint64_t kCodeEnd = 0x411000;
constexpr uint64_t kGenerated = 0x900000;  // code without a file
constexpr uint64_t kGeneratedEnd = 0x901000;
constexpr uint64_t kStack = 0x7000;
constexpr uint64_t kStackEnd = 0x8000;

class FakeMemory : public SearchedMemory {
 public:
  FakeMemory() : code_(kCodeEnd - kCode, 0x90) {}

  void Put(uint64_t address, const std::vector<uint8_t>& bytes) {
    std::copy(bytes.begin(), bytes.end(), code_.begin() + (address - kCode));
  }
  // Puts a direct call to `target` that returns to `address`.
  void PutCall(uint64_t address, uint64_t target) {
    const auto distance = static_cast<int32_t>(target - address);
    uint8_t call[5] = {0xe8};
    std::memcpy(call + 1, &distance, sizeof(distance));
    Put(address - sizeof(call), {call, call + sizeof(call)});
  }
  void Push(uint64_t address, uint64_t word) { stack_[address] = word; }

  bool ReadStackWord(uint64_t address, uint64_t* word) override {
    if (address < kStack || address >= kStackEnd) return false;
    *word = stack_.count(address) > 0 ? stack_[address] : 0;
    return true;
  }
  bool IsCode(uint64_t address) override {
    return (address >= kCode && address < kCodeEnd) ||
           (address >= kGenerated && address < kGeneratedEnd);
  }
  bool ReadCode(uint64_t address, void* to, size_t size) override {
    if (address < kCode || address + size > kCodeEnd) return false;
    std::memcpy(to, code_.data() + (address - kCode), size);
    return true;
  }

 private:
  std::vector<uint8_t> code_;
  std::map<uint64_t, uint64_t> stack_;
};

constexpr uint64_t kFunction = 0x404000;

class CallerSearchTest : public ::testing::Test {
 protected:
  // push %rbp; mov %rsp,%rbp; sub $0x40,%rsp
  CallerSearchTest() { memory_.Put(kFunction, {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x40}); }

  std::vector<CallerCandidate> Find(uint64_t start = kFunction) {
    return FindCallers({kFunction + 0x20, start, kStack}, kStackEnd - kStack, &memory_);
  }

  FakeMemory memory_;
};

TEST_F(CallerSearchTest, PrefersTheCallOfTheFunctionToNearerOnes) {
  memory_.PutCall(0x402010, 0x403000);
  memory_.Put(0x402030 - 2, {0xff, 0xd0});  // call *%rax
  memory_.PutCall(0x402050, kFunction);
  memory_.Push(kStack + 0x08, 0x402010);
  memory_.Push(kStack + 0x10, 0x402030);
  memory_.Push(kStack + 0x98, 0x402050);
  const auto found = Find();
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].return_address, 0x402050u);
  EXPECT_EQ(found[0].rank, CallerRank::kCallsIt);
  EXPECT_EQ(found[1].rank, CallerRank::kMayCallIt);
  EXPECT_EQ(found[2].rank, CallerRank::kCallsOther);
}

TEST_F(CallerSearchTest, PrefersThePlaceWhereTheProloguePutsTheFrame) {
  memory_.PutCall(0x402050, kFunction);
  memory_.Push(kStack + 0x20, 0x402050);  // an old frame
  memory_.Push(kStack + 0x48, 0x402050);  // 0x40 bytes of room and the frame pointer below it
  const auto found = Find();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].slot, kStack + 0x48);
  EXPECT_EQ(found[0].rank, CallerRank::kCallsItAndFits);
}

TEST_F(CallerSearchTest, LooksForTheStartOfTheFunction) {
  memory_.PutCall(0x402050, kFunction);
  memory_.Push(kStack + 0x48, 0x402050);
  EXPECT_EQ(Find(0).at(0).rank, CallerRank::kCallsItAndFits);
}

TEST_F(CallerSearchTest, CountsACallThroughTheLinkageTableAsOneByPointer) {
  memory_.Put(0x405000, {0xff, 0x25, 0, 0x10, 0, 0});  // jmp *0x1000(%rip)
  memory_.PutCall(0x402010, 0x405000);
  memory_.Push(kStack + 0x08, 0x402010);
  EXPECT_EQ(Find().at(0).rank, CallerRank::kMayCallIt);
}

TEST_F(CallerSearchTest, SkipsAddressesThatFollowNoCall) {
  memory_.Push(kStack + 0x08, 0x402010);
  memory_.Push(kStack + 0x10, 0x1234);
  EXPECT_TRUE(Find().empty());
}

TEST_F(CallerSearchTest, TakesAnAddressOfGeneratedCodeOnlyAboveAFramePointer) {
  memory_.Push(kStack + 0x10, kGenerated + 8);
  EXPECT_TRUE(Find().empty());
  memory_.Push(kStack + 0x08, kStack + 0x100);
  memory_.Push(kStack + 0x108, kGenerated + 0x80);
  const auto found = Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].return_address, kGenerated + 8);
  EXPECT_EQ(found[0].frame_pointer, kStack + 0x100);
}

TEST_F(CallerSearchTest, KeepsABoundedNumberOfCandidates) {
  memory_.PutCall(0x402010, 0x403000);
  for (uint64_t at = kStack; at < kStackEnd; at += 8) memory_.Push(at, 0x402010);
  EXPECT_LT(Find().size(), 100u);
}

TEST_F(CallerSearchTest, SurvivesAddressesAtBothEnds) {
  memory_.Push(kStack, kCode);  // too near to the start of the file for a call before it
  memory_.Push(kStack + 8, ~uint64_t{0});
  EXPECT_TRUE(Find().empty());
  EXPECT_TRUE(FindCallers({1, 0, ~uint64_t{0} - 4}, 64, &memory_).empty());
  EXPECT_FALSE(RankSlot({1, 0, 0}, 0, &memory_).has_value());
}

}  // namespace
}  // namespace rollcall
