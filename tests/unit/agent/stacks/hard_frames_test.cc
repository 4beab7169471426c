// SPDX-License-Identifier: Apache-2.0
// Unwinds the frames of frame_victim, which tables alone do not explain, to the end of each stack.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "agent/stacks/call_instructions.h"
#include "agent/stacks/ptrace_stack_taker.h"
#include "agent/stacks/stack_reader.h"
#include "patient_limits.h"
#include "victim_process.h"

namespace rollcall {
namespace {

using testing::HasSubstr;

class HardFramesTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    victim_ = new VictimProcess("frame_victim");
    ASSERT_TRUE(victim_->WaitForAll('S'));
    sample_ = new RawSample(PtraceStackTaker().Take(victim_->pid(), PatientLimits()));
  }
  static void TearDownTestSuite() {
    delete sample_;
    delete victim_;
  }

  static RawThread Raw(const std::string& name) {
    for (const RawThread& thread : sample_->threads) {
      if (thread.name == name) return thread;
    }
    ADD_FAILURE() << "no thread " << name << ": " << sample_->error;
    return {};
  }

  ThreadStack Unwind(const RawThread& thread) {
    RawSample one = *sample_;
    one.threads = {thread};
    return reader_.Unwind(one, TakeLimits()).threads.at(0);
  }

  ThreadStack StackOf(const std::string& name) { return Unwind(Raw(name)); }

  static const Frame* Find(const ThreadStack& thread, const std::string& function) {
    for (const Frame& frame : thread.frames) {
      if (frame.function.find(function) != std::string::npos) return &frame;
    }
    ADD_FAILURE() << "no frame " << function << "\n" << FormatThreadStack(thread);
    static const Frame kNone;
    return &kNone;
  }

  // The thread's own functions follow one another, and the stack goes on to the thread's start.
  static void ExpectWhole(const ThreadStack& thread, const std::vector<std::string>& functions) {
    std::vector<std::string> expected = functions;
    expected.push_back("victim::Outer(void (*)())");
    expected.push_back("victim::RunRole(void*)");
    std::vector<std::string> names;
    for (const Frame& frame : thread.frames) {
      if (frame.inlined || frame.function.find("lambda") != std::string::npos) continue;
      names.push_back(frame.function);
    }
    const auto found = std::search(names.begin(), names.end(), expected.begin(), expected.end());
    EXPECT_NE(found, names.end()) << FormatThreadStack(thread);
    // start_thread and clone of the C library.
    EXPECT_EQ(names.end() - found, static_cast<ptrdiff_t>(expected.size()) + 2)
        << FormatThreadStack(thread);
  }

  static VictimProcess* victim_;
  static RawSample* sample_;
  StackReader reader_;
};

VictimProcess* HardFramesTest::victim_ = nullptr;
RawSample* HardFramesTest::sample_ = nullptr;

const char kPolls[] = "victim::WaitInEpoll()";
const char kAnySize[] = "victim::FrameOfAnySize(int)";
const char kWaits[] = "victim::WaitInFutex()";

TEST_F(HardFramesTest, FindsAFrameOfAnySizeWithoutTheFramePointer) {
  ASSERT_EQ(Raw("poll").how, HowTaken::kWatched);
  const ThreadStack thread = StackOf("poll");
  ExpectWhole(thread, {"syscall", kAnySize, "victim::CallFrameOfAnySize()"});
  EXPECT_EQ(thread.note, "");
}

TEST_F(HardFramesTest, FindsAFrameThatWasCalledByPointer) {
  ExpectWhole(StackOf("poll by pointer"), {"syscall", kAnySize});
}

TEST_F(HardFramesTest, FindsAFrameThatTheCompilerAligned) {
  ExpectWhole(StackOf("poll aligned"), {"syscall", "victim::AlignedFrameOfAnySize()"});
}

TEST_F(HardFramesTest, TakesNoOldFrameForALivingOne) {
  const ThreadStack thread = StackOf("poll old frames");
  ExpectWhole(thread, {"syscall", kAnySize, "victim::CallAmongOldFrames()"});
}

TEST_F(HardFramesTest, FindsAFrameOfFixedSizeWithoutTheFramePointer) {
  const ThreadStack thread = StackOf("poll fixed");
  ExpectWhole(thread,
              {kPolls, "victim_frame_pointer_call", "victim::FixedFrameWithFramePointer()"});
}

TEST_F(HardFramesTest, FindsTheCallerOfAssemblyInAThreadThatPolls) {
  ExpectWhole(StackOf("poll assembly"),
              {kPolls, "assembly_call", "victim::CallAssemblyThatPolls()"});
}

TEST_F(HardFramesTest, LeavesTheStackOfASignalHandlerForTheInterruptedOne) {
  const ThreadStack thread = StackOf("other stack");
  Find(thread, "victim::WaitInHandler()");
  Find(thread, "<signal handler called>");
  Find(thread, "victim::SignalOnAnotherStack()");
  ExpectWhole(thread, {"victim::SignalOnAnotherStack()"});
  EXPECT_EQ(thread.note, "");
}

TEST_F(HardFramesTest, LeavesASignalStackThatLiesInALargeHeap) {
  const ThreadStack thread = StackOf("stack in heap");
  Find(thread, "<signal handler called>");
  ExpectWhole(thread, {"victim::SignalOnAStackInAHeap()"});
  EXPECT_EQ(thread.note, "");
}

TEST_F(HardFramesTest, LeavesASignalHandlerWithoutUnwindInformation) {
  const ThreadStack thread = StackOf("restorer");
  Find(thread, "<signal handler called>");
  ExpectWhole(thread, {"victim::SignalWithoutUnwindInformation()"});
  EXPECT_EQ(thread.note, "");
}

TEST_F(HardFramesTest, FindsTheCallerOfAssembly) {
  const ThreadStack thread = StackOf("assembly");
  ExpectWhole(thread, {kWaits, "assembly_call", "victim::CallAssembly()"});
  EXPECT_EQ(thread.note, "");
}

TEST_F(HardFramesTest, FindsTheCallerOfAssemblyByPointerAndSaysThatItSearched) {
  const ThreadStack thread = StackOf("assembly ptr");
  ExpectWhole(thread, {kWaits, "assembly_call", "victim::CallAssemblyByPointer()"});
  EXPECT_THAT(thread.note, HasSubstr("found by searching the stack"));
}

TEST_F(HardFramesTest, FindsTheCallerOfAssemblyThatOverwritesItsFramePointer) {
  ExpectWhole(StackOf("assembly framed"),
              {kWaits, "assembly_call", "victim::CallAssemblyFromAnySize()"});
}

TEST_F(HardFramesTest, TakesNoOldWordsThatLeadToNoCodeForTheCaller) {
  ExpectWhole(StackOf("assembly old"),
              {kWaits, "assembly_call", "victim::CallAssemblyAmongOldWords()"});
}

TEST_F(HardFramesTest, NamesTheCallerIfTheCallIsItsLastInstruction) {
  ExpectWhole(StackOf("assembly good"),
              {kWaits, "assembly_call_for_good", "victim::CallAssemblyForGood()"});
}

TEST_F(HardFramesTest, FollowsTheFramePointersOfGeneratedCode) {
  const ThreadStack thread = StackOf("generated");
  ExpectWhole(thread, {"victim::CallGenerated()"});
  EXPECT_EQ(Find(thread, "victim::CallGenerated()")[-1].module, "[JIT code]");
}

TEST_F(HardFramesTest, SearchesTheCallerOfGeneratedCodeWithoutFramePointers) {
  const ThreadStack thread = StackOf("generated bare");
  ExpectWhole(thread, {"victim::CallGeneratedWithoutFramePointer()"});
  EXPECT_EQ(Find(thread, "FramePointer()")[-1].module, "[JIT code]");
}

TEST_F(HardFramesTest, EndsWhereAContextOfItsOwnBegins) {
  const ThreadStack thread = StackOf("context");
  Find(thread, "victim::CallOnAnotherStack()");
  EXPECT_EQ(thread.note, "");
}

TEST_F(HardFramesTest, ReadsUnwindInformationWithoutASearchTable) {
  const ThreadStack thread = StackOf("no table");
  ExpectWhole(thread, {kWaits, "victim_no_table_call"});
  EXPECT_EQ(thread.note, "");
}

TEST_F(HardFramesTest, UnwindsCodeWithShadowStacks) {
  const ThreadStack thread = StackOf("cf protection");
  ExpectWhole(thread, {kWaits, "victim_cf_protection_call"});
  EXPECT_EQ(thread.note, "");
}

TEST_F(HardFramesTest, ShowsInlinedCallsOfSplitDebugInformation) {
  const ThreadStack thread = StackOf("split dwarf");
  const Frame* inlined = Find(thread, "InlinedInner");
  EXPECT_TRUE(inlined->inlined);
  EXPECT_GT(inlined->line, 0);
  EXPECT_THAT(inlined->source_file, HasSubstr("victim_inlines.cc"));
  const Frame* caller = Find(thread, "victim_split_dwarf_call");
  EXPECT_GT(caller->line, inlined->line);
  EXPECT_THAT(caller->source_file, HasSubstr("victim_inlines.cc"));
}

TEST_F(HardFramesTest, ShowsInlinedCallsOfUnitsWithoutATableOfAddresses) {
  const ThreadStack thread = StackOf("no aranges");
  EXPECT_TRUE(Find(thread, "InlinedInner")->inlined);
  EXPECT_GT(Find(thread, "victim_no_aranges_call")->line, 0);
}

TEST(EndlessRuleTest, EndsTheStackWithANote) {
  VictimProcess victim("frame_victim", "endless");
  ASSERT_TRUE(victim.WaitForAll('S'));
  PtraceStackTaker taker;
  StackReader reader;
  const ProcessStack process = reader.TakeAndUnwind(&taker, victim.pid(), PatientLimits());
  const ThreadStack& thread = process.threads.at(1);
  EXPECT_EQ(thread.frames.back().function, "assembly_with_endless_rule")
      << FormatThreadStack(thread);
  EXPECT_EQ(thread.note, "unwinding takes too long");
}

// Returns the thread as it was when `function` had just called the code at `address`: the return
// address is on top of the stack.
RawThread AtEntry(const RawThread& raw, const Frame& function, uint64_t address) {
  RawThread entered = raw;
  const uint64_t slot = function.stack_pointer - sizeof(uint64_t);
  entered.stack.assign(raw.stack.begin() + (slot - raw.stack_base), raw.stack.end());
  entered.stack_base = slot;
  entered.registers.rsp = slot;
  entered.registers.rip = address;
  return entered;
}

TEST_F(HardFramesTest, UnwindsAssemblyAtItsFirstInstruction) {
  const RawThread raw = Raw("assembly");
  const ThreadStack whole = Unwind(raw);
  constexpr uint64_t kBytesToTheCall = 18;
  const uint64_t start = Find(whole, "assembly_call")->address - kBytesToTheCall;
  RawThread entered = AtEntry(raw, *Find(whole, "victim::CallAssembly()"), start);
  // The frame pointer is the caller's.
  entered.registers.rbp = Find(whole, "victim::Outer(void (*)())")->stack_pointer + 64;
  const ThreadStack thread = Unwind(entered);
  ASSERT_EQ(thread.frames.at(0).function, "assembly_call");
  ExpectWhole(thread, {"victim::CallAssembly()"});
}

TEST_F(HardFramesTest, UnwindsAnEntryOfTheLinkageTable) {
  const RawThread raw = Raw("no table");
  const ThreadStack whole = Unwind(raw);
  const Frame& callee = *Find(whole, "victim_no_table_call");
  const Frame& caller = (&callee)[1];
  // The call goes to the table's entry, which is in the same file.
  const auto* map = FindMap(sample_->maps, caller.address);
  ASSERT_NE(map, nullptr);
  FILE* file = fopen(map->path.c_str(), "rb");
  ASSERT_NE(file, nullptr);
  uint8_t before[kMaxCallBytes];
  fseek(file, static_cast<long>(map->offset + caller.address - map->start - sizeof(before)),
        SEEK_SET);
  ASSERT_EQ(fread(before, 1, sizeof(before), file), sizeof(before));
  fclose(file);
  const CallInstruction call = DecodeCall(caller.address, before);
  ASSERT_EQ(call.kind, CallTarget::kDirect);
  const ThreadStack thread = Unwind(AtEntry(raw, caller, call.target));
  ASSERT_EQ(thread.frames.at(0).address, call.target);
  ASSERT_GT(thread.frames.size(), 1u) << FormatThreadStack(thread);
  EXPECT_EQ(thread.frames[1].address, caller.address) << FormatThreadStack(thread);
  ExpectWhole(thread, {});
}

}  // namespace
}  // namespace rollcall
