// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks/barrier_name.h"

#include <gtest/gtest.h>

#include <cstring>

namespace rollcall {
namespace {

constexpr uint64_t kBase = 0x7fff0000;
constexpr uint64_t kStackBytes = 1024;

// Holds its text itself, as a short std::string does.
void Put(const std::string& text, uint64_t offset, RawThread* thread) {
  const uint64_t address = kBase + offset + 16, size = text.size();
  memcpy(thread->stack.data() + offset, &address, sizeof(address));
  memcpy(thread->stack.data() + offset + 8, &size, sizeof(size));
  memcpy(thread->stack.data() + offset + 16, text.c_str(), text.size() + 1);
}

RawThread Thread() {
  RawThread thread;
  thread.stack_base = kBase;
  thread.stack.assign(kStackBytes, 0);
  return thread;
}

Frame At(const char* function, uint64_t offset) {
  Frame frame;
  frame.function = function;
  frame.stack_pointer = kBase + offset;
  return frame;
}

std::vector<Frame> Frames(const char* function = "xla::CoordinationServiceAgent::WaitAtBarrier()") {
  return {At("syscall", 0),
          At(function, 256),
          At("xla::DistributedRuntimeClient::WaitAtBarrier", 320),
          At("nanobind::func_create", 512),
          At("PyObject_Vectorcall", 768),
          At("main", 1000)};
}

TEST(BarrierNameTest, IsTheTextThatTheCallersHold) {
  RawThread thread = Thread();
  Put("saved-4", 400, &thread);
  EXPECT_EQ(FindBarrierName(thread, Frames()), "saved-4");
  Put("saved-4", 600, &thread);
  EXPECT_EQ(FindBarrierName(thread, Frames()), "saved-4");
}

TEST(BarrierNameTest, IsNotKnownIfTheyHoldTwoTexts) {
  RawThread thread = Thread();
  Put("saved-4", 400, &thread);
  Put("saved-5", 600, &thread);
  EXPECT_EQ(FindBarrierName(thread, Frames()), "");
}

TEST(BarrierNameTest, IsNotTextOutsideOfTheirFrames) {
  RawThread thread = Thread();
  Put("an older call", 64, &thread);
  Put("of the program", 900, &thread);
  EXPECT_EQ(FindBarrierName(thread, Frames()), "");
  Put("saved-4", 400, &thread);
  EXPECT_EQ(FindBarrierName(thread, Frames("xla::CoordinationServiceAgent::Connect()")), "");
  EXPECT_EQ(FindBarrierName(thread, {}), "");
  EXPECT_EQ(FindBarrierName(thread, {Frames()[1]}), "");
}

TEST(BarrierNameTest, IgnoresAnIncompleteShortString) {
  RawThread thread = Thread();
  Put("saved\n4", 400, &thread);
  EXPECT_EQ(FindBarrierName(thread, Frames()), "");
  thread = Thread();
  Put("saved-4", 400, &thread);
  thread.stack[400 + 8] = 16;  // its size
  EXPECT_EQ(FindBarrierName(thread, Frames()), "");
  thread.stack.resize(410);
  EXPECT_EQ(FindBarrierName(thread, Frames()), "");
  thread.stack.clear();
  EXPECT_EQ(FindBarrierName(thread, Frames()), "");
}

}  // namespace
}  // namespace rollcall
