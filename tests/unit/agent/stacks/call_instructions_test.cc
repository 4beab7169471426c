// SPDX-License-Identifier: Apache-2.0
// Decodes the instructions of x86-64 around calls.
#include "agent/stacks/call_instructions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace rollcall {
namespace {

// The bytes end where the call ends. Other code is before them.
CallInstruction Decode(const std::vector<uint8_t>& call, uint64_t return_address = 0x401000) {
  std::vector<uint8_t> code(kMaxCallBytes + call.size(), 0x90);
  std::copy(call.begin(), call.end(), code.begin() + kMaxCallBytes);
  return DecodeCall(return_address, code.data() + call.size());
}

TEST(DecodeCallTest, FindsTheTargetOfADirectCall) {
  const CallInstruction back = Decode({0xe8, 0xf0, 0xff, 0xff, 0xff});
  EXPECT_EQ(back.kind, CallTarget::kDirect);
  EXPECT_EQ(back.target, 0x400ff0u);
  EXPECT_EQ(Decode({0xe8, 0x10, 0, 0, 0}).target, 0x401010u);
}

TEST(DecodeCallTest, KnowsEveryFormOfAnIndirectCall) {
  const std::vector<std::vector<uint8_t>> calls = {
      {0xff, 0xd0},                          // call *%rax
      {0x41, 0xff, 0xd3},                    // call *%r11
      {0xff, 0x10},                          // call *(%rax)
      {0xff, 0x50, 0x28},                    // call *0x28(%rax)
      {0xff, 0x90, 0x28, 0x01, 0, 0},        // call *0x128(%rax)
      {0xff, 0x15, 0x28, 0x01, 0, 0},        // call *0x128(%rip)
      {0xff, 0x14, 0xd8},                    // call *(%rax,%rbx,8)
      {0x41, 0xff, 0x54, 0xdc, 0x08},        // call *8(%r12,%rbx,8)
      {0xff, 0x94, 0xd8, 0x28, 0x01, 0, 0},  // call *0x128(%rax,%rbx,8)
      {0xff, 0x14, 0xc5, 0x28, 0x01, 0, 0},  // call *0x128(,%rax,8)
  };
  for (const auto& call : calls) {
    EXPECT_EQ(Decode(call).kind, CallTarget::kIndirect) << testing::PrintToString(call);
  }
}

TEST(DecodeCallTest, RefusesOtherInstructions) {
  const std::vector<std::vector<uint8_t>> others = {
      {0xff, 0xe0},              // jmp *%rax
      {0xff, 0x30},              // push (%rax)
      {0xc3},                    // ret
      {0x0f, 0x05},              // syscall
      {0xff, 0x50},              // half a call
      {0x48, 0x83, 0xc4, 0x10},  // add $16,%rsp
  };
  for (const auto& other : others) {
    EXPECT_EQ(Decode(other).kind, CallTarget::kNone) << testing::PrintToString(other);
  }
}

TEST(FramePointerDistancesTest, AddsRoomAndSavedRegisters) {
  // push %rbp; mov %rsp,%rbp; push %r12; push %rbx; sub $0x30,%rsp
  const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x41, 0x54, 0x53, 0x48, 0x83, 0xec, 0x30};
  EXPECT_THAT(FramePointerDistances(code, sizeof(code)), testing::Contains(0x40u));
  // push %rbp; mov %rsp,%rbp; sub $0x3010,%rsp
  const uint8_t wide[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x81, 0xec, 0x10, 0x30, 0, 0};
  EXPECT_EQ(FramePointerDistances(wide, sizeof(wide)).front(), 0x3010u);
}

TEST(FramePointerDistancesTest, AreNoneWithoutAFramePointer) {
  const uint8_t code[] = {0x53, 0x48, 0x83, 0xec, 0x30};  // push %rbx; sub $0x30,%rsp
  EXPECT_TRUE(FramePointerDistances(code, sizeof(code)).empty());
  EXPECT_TRUE(FramePointerDistances(code, 0).empty());
}

TEST(BytesSincePrologueTest, FindsTheStartOfAFunctionAtItsAlignment) {
  std::vector<uint8_t> code(64, 0x90);
  const uint8_t prologue[] = {0x55, 0x48, 0x89, 0xe5};
  std::copy(std::begin(prologue), std::end(prologue), code.begin() + 16);
  EXPECT_EQ(BytesSincePrologue(code.data(), code.size(), 0x401040), 48u);
  EXPECT_EQ(BytesSincePrologue(code.data(), 60, 0x40103c), 44u);
  // Not at a multiple of 16.
  EXPECT_EQ(BytesSincePrologue(code.data(), code.size(), 0x401041), 0u);
  // Another function is in between.
  code[40] = code[41] = 0xcc;
  EXPECT_EQ(BytesSincePrologue(code.data(), code.size(), 0x401040), 0u);
}

// The sanitizers check the bounds.
TEST(CallInstructionsTest, StayWithinAnyBytes) {
  std::mt19937 random(7);
  for (int round = 0; round < 20000; ++round) {
    std::vector<uint8_t> bytes(kMaxCallBytes + random() % 90);
    for (uint8_t& byte : bytes) byte = random() % 4 == 0 ? 0xff : random();
    DecodeCall(random(), bytes.data());
    FramePointerDistances(bytes.data(), bytes.size());
    BytesSincePrologue(bytes.data(), bytes.size(), random());
  }
}

}  // namespace
}  // namespace rollcall
