// SPDX-License-Identifier: Apache-2.0
// Processes whose main thread a tracer holds: for a stack, or for good.
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include <future>
#include <string>
#include <thread>

#include "agent/collector/collector.h"
#include "base/durations.h"
#include "base/steady_clock.h"
#include "collector_fixture.h"
#include "eventually.h"

namespace rollcall {
namespace {

bool Hold(pid_t pid) {
  return ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) == 0 &&
         ptrace(PTRACE_INTERRUPT, pid, nullptr, nullptr) == 0;
}

// Another process that holds the thread until the test ends it, as a debugger does.
class Debugger {
 public:
  explicit Debugger(pid_t traced) : pid_(fork()) {
    if (pid_ != 0) return;
    if (!Hold(traced)) _exit(1);
    for (;;) pause();
  }
  ~Debugger() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

 private:
  const pid_t pid_;
};

class StopTest : public CollectorTest {
 protected:
  void SetUp() override {
    CollectorTest::SetUp();
    segment_.AddAllReduce(segment_.AddComm(5, 0, 2), 5000);
    WriteSegment(child_, &segment_);
    ASSERT_TRUE(Eventually([this] { return StateNow() == 'S'; }));
  }
  char StateNow() const { return ReadProcStat("/proc", child_.pid())->state; }
  // Collects a tick `later_ns` from now.
  v1::Evidence Collect(int64_t later_ns) {
    return Only(collector_->Collect(SteadyNs() + later_ns, true)).evidence();
  }

  const Child child_;
  std::unique_ptr<Collector> collector_;
};

TEST_F(StopTest, IgnoresStopsThatTheAgentCaused) {
  collector_ = std::make_unique<Collector>(Options());
  EXPECT_EQ(Collect(0).state(), "S");
  std::promise<bool> held;
  std::promise<void> done;
  std::thread taker([&] {
    held.set_value(Hold(child_.pid()));
    done.get_future().wait();
  });
  const bool is_held = held.get_future().get();
  const bool is_seen = is_held && Eventually([this] { return StateNow() == 't'; });
  for (const int64_t later_ns : {2 * kSecond, 4 * kSecond}) {
    const v1::Evidence evidence = Collect(later_ns);
    EXPECT_EQ(evidence.state(), "S");
    EXPECT_FALSE(evidence.traced());
  }
  done.set_value();
  taker.join();
  if (!is_held) GTEST_SKIP() << "nobody may trace a process here";
  EXPECT_TRUE(is_seen);
}

TEST_F(StopTest, AnotherTracerStopsAProcessOnceItHoldsItForLong) {
  collector_ = std::make_unique<Collector>(Options());
  EXPECT_EQ(Collect(0).state(), "S");
  const Debugger debugger(child_.pid());
  if (!Eventually([this] { return StateNow() == 't'; })) {
    GTEST_SKIP() << "another process may not trace a process here";
  }
  EXPECT_EQ(Collect(2 * kSecond).state(), "S");
  const v1::Evidence evidence = Collect(4 * kSecond);
  EXPECT_EQ(evidence.state(), "t");
  EXPECT_TRUE(evidence.traced());
}

}  // namespace
}  // namespace rollcall
