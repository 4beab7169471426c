// SPDX-License-Identifier: Apache-2.0
// The key of a store that a process waits for before it has a segment: the library notes it on the
// stack, and the agent finds it in a sample. Both are the real ones; a stub plays PyTorch.
#include "agent/stacks/ptrace_stack_taker.h"
#include "agent/stacks/stack_reader.h"
#include "library_steps.h"
#include "patient_limits.h"

namespace rollcall {
namespace {

class KeyNoteTest : public PreloadedProcessTest {
 protected:
  KeyNoteTest() : PreloadedProcessTest(ROLLCALL_STUB_DIR) {}
  ~KeyNoteTest() override {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    WaitFor(pid_);
  }

  // The main thread of a process that has taken these steps, once it pauses.
  ThreadStack Pausing(const std::vector<std::string>& steps) {
    std::vector<std::string> command = {GLOO_STEPS};
    command.insert(command.end(), steps.begin(), steps.end());
    pid_ = Start(command);
    ThreadStack thread;
    EXPECT_TRUE(Eventually([&] {
      const ProcessStack process = reader_.TakeAndUnwind(&taker_, pid_, PatientLimits());
      if (process.threads.empty()) return false;
      thread = process.threads.front();
      return Pauses(thread);
    })) << Stderr();
    return thread;
  }

 private:
  static bool Pauses(const ThreadStack& thread) {
    const std::vector<Frame>& frames = thread.frames;
    return std::any_of(frames.begin(), frames.end(), [](const Frame& frame) {
      return absl::StrContains(frame.function, "pause");
    });
  }

  PtraceStackTaker taker_;
  StackReader reader_;
  pid_t pid_ = 0;
};

TEST_F(KeyNoteTest, TheAgentFindsTheKeyThatAProcessWithoutASegmentWaitsFor) {
  EXPECT_EQ(Pausing({"hold", "key"}).awaited_key, "/saved/step 7 ... /other (2 keys)");
  EXPECT_TRUE(Segments().empty());
}

TEST_F(KeyNoteTest, TheKeyOfAnEndedWaitDoesNotCount) {
  EXPECT_EQ(Pausing({"key", "get", "stay"}).awaited_key, "");
}

}  // namespace
}  // namespace rollcall
