// The agent: reads this host's training processes many times a second, reports
// to the daemon what changed, and takes stacks when the daemon asks.
//
// Runs inside rollcall-agent, and inside `rollcall run`. A daemon that cannot be
// reached is tried again with growing pauses for as long as the agent runs; the
// job never notices. Start() returns at once; the destructor stops the threads.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "agent/collector.h"
#include "agent/processes/process_id.h"
#include "agent/processes/spare_threads.h"
#include "agent/stacks/any_stack_taker.h"
#include "agent/stacks/quit_answers.h"
#include "agent/stacks/stacks.h"
#include "agent/wait_floor.h"

namespace grpc {
class ChannelInterface;
}

namespace rollcall {

struct AgentOptions {
  CollectorOptions collector;
  std::string host;  // the name of this host in verdicts; "" for its host name
  int64_t tick_ns = 100'000'000;
};

class Agent {
 public:
  Agent(AgentOptions options, std::shared_ptr<grpc::ChannelInterface> channel);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  void Start();
  // Sends what there is to send once more, then stops. Safe to call twice.
  void Stop();

  // Whether any process that it watched has created a communicator. After Stop() only.
  bool seen_communicators() const { return collector_.seen_communicators(); }

 private:
  class Link;
  // Of one thread at a time, which may not come back.
  struct StackTools {
    explicit StackTools(const std::string& proc_root) : reader(proc_root), taker(proc_root) {}
    StackReader reader;
    AnyStackTaker taker;
  };
  struct StackRequest {
    uint64_t request = 0;
    std::vector<ProcessId> processes;
  };

  void RunUplink();
  void TickUntilBroken(Link* link);
  v1::Tick Collect(bool whole);
  void CollectAndSend(bool whole, Link* link);
  void RunStacks();
  void Answer(const StackRequest& request);
  v1::ProcessStack TakeStack(ProcessId process);
  void Sleep(int64_t ns);  // until then, or until it stops

  const AgentOptions options_;
  const std::shared_ptr<grpc::ChannelInterface> channel_;
  Collector collector_;  // the uplink thread's own

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Link* link_ ABSL_GUARDED_BY(mutex_) = nullptr;  // the stream, while there is one
  std::deque<StackRequest> stack_requests_ ABSL_GUARDED_BY(mutex_);

  // absl's timed waits are on the wall clock, which may be set back.
  std::mutex sleep_mutex_;
  std::condition_variable woken_;
  bool awake_for_good_ = false;  // with sleep_mutex_ held

  PauseWatch pauses_;
  SpareThreads stack_threads_;
  std::shared_ptr<StackTools> stack_tools_;  // the stacks thread's own, or the one that it lent them

  QuitAnswers quit_answers_;

  uint64_t dropped_ticks_ = 0;  // the uplink thread's own
  std::thread uplink_, stacks_;
};

}  // namespace rollcall
