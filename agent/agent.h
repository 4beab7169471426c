// SPDX-License-Identifier: Apache-2.0
// The agent: reads this host's training processes many times a second, reports
// to the daemon what changed, and takes stacks when the daemon asks.
//
// Runs inside rollcall-agent, and inside `rollcall run`. A daemon that cannot be
// reached is tried again with growing pauses for as long as the agent runs; the
// job never notices. Start() returns at once; the destructor stops the threads.
//
// One thread, the uplink, writes the stream to the daemon, and holds no lock while it does: a write
// waits for as long as the daemon does not read. The stacks thread hands its answers to the uplink.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "agent/collector.h"
#include "agent/processes/process_id.h"
#include "agent/processes/spare_threads.h"
#include "agent/stacks/any_stack_taker.h"
#include "agent/stacks/quit_answers.h"
#include "agent/stacks/stacks.h"
#include "agent/wait_floor.h"

namespace grpc {
class ChannelInterface;
class ClientContext;
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
  // Sends what there is to send once more, then stops. A daemon that takes nothing is given three
  // seconds (kLastWords in agent.cc), then cut off. Safe to call twice.
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
  std::shared_ptr<grpc::ClientContext> NewContext();
  void TickUntilBroken(Link* link);
  v1::Tick Collect(bool whole);
  void CollectAndSend(bool whole, Link* link);
  void SendAnswersUntil(int64_t until_ns, Link* link);
  void SetLinked(bool linked);
  void CutOffWhenLate();
  void RunStacks();
  void Answer(const StackRequest& request);
  bool HandOver(v1::AgentMessage answer);
  v1::ProcessStack TakeStack(ProcessId process);
  void Sleep(int64_t ns);  // until then, or until it stops
  bool stopping();

  const AgentOptions options_;
  const std::shared_ptr<grpc::ChannelInterface> channel_;
  Collector collector_;  // the uplink thread's own

  // Not absl's: their timed waits are on the wall clock, which may be set back. The mutex guards
  // the members down to the next blank line; the condition tells that one of them has changed.
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  bool uplink_runs_ = false;
  bool cut_off_ = false;                          // no stream may wait any longer
  bool linked_ = false;                           // there is somebody to tell answers
  std::shared_ptr<grpc::ClientContext> context_;  // of the newest stream
  std::deque<StackRequest> stack_requests_;
  std::optional<v1::AgentMessage> answer_;  // to be sent next

  PauseWatch pauses_;
  SpareThreads stack_threads_;
  std::shared_ptr<StackTools> stack_tools_;  // the stacks thread's own, or the one that it lent them

  QuitAnswers quit_answers_;

  uint64_t dropped_ticks_ = 0;  // the uplink thread's own
  std::thread uplink_, stacks_;
};

}  // namespace rollcall
