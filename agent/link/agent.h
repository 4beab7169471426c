// SPDX-License-Identifier: Apache-2.0
// The agent reads this host's training processes many times a second, reports changes to the
// daemon, and takes stacks and gathers facts about the host when the daemon requests them.
//
// The agent runs inside rollcall-agent and inside `rollcall run`. While the daemon cannot be
// reached, the agent retries with growing pauses; the job does not depend on the connection.
// Start() returns at once; the destructor stops the threads.
//
// One thread, the uplink, writes the stream to the daemon. The uplink holds no lock during a
// write, because a write blocks until the daemon reads. The stacks thread and the thread for facts
// about the host pass their answers to the uplink.
//
// With CollectorOptions::find_unrecorded the agent also reports to the daemon which ranks run here
// without the library. It takes nothing from them unless the daemon asks.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "agent/collector/collector.h"
#include "agent/link/host_facts_answers.h"
#include "agent/link/host_facts_service.h"
#include "agent/link/host_hangs_relay.h"
#include "agent/link/host_hangs_sink.h"
#include "agent/link/stack_answers.h"
#include "agent/link/stack_service.h"
#include "agent/link/stream_cutter.h"
#include "agent/link/stream_watcher.h"
#include "agent/link/unrecorded_list.h"
#include "agent/link/uplink_inbox.h"
#include "agent/link/wait_floor.h"
#include "agent/stacks/quit_answers.h"

namespace grpc {
class ChannelInterface;
class ClientContext;
class Status;
}  // namespace grpc

namespace rollcall {

class DaemonStream;

struct AgentOptions {
  CollectorOptions collector;
  std::string host;               // this host's name in verdicts; empty means the system's
  int64_t tick_ns = 100'000'000;  // from one tick to the next, unless the daemon asks for fewer
  // Says why a stream failed, for the log; may take seconds. Empty means the stream's own message.
  std::function<std::string(const grpc::Status&)> explain;
  // Whether the daemon of a stream may still be believed, asked every ten seconds. Empty means
  // always.
  std::function<bool(const grpc::ClientContext&)> still_trusts;
  // Processes whose stacks the agent takes for the daemon; 0 means no limit.
  int64_t max_stacks_per_minute = 600;
  bool stacks_on = true;     // false: the agent takes no stacks at all
  bool answers_quit = true;  // SIGQUIT of the processes; false: another agent of this process does
  HostFactsOptions host_facts;
  // Several agents in one process share this. nullptr if the agent is alone, and has one daemon for
  // all jobs.
  std::shared_ptr<StackAllowance> stack_allowance, look_allowance;
  std::shared_ptr<StackNamer> stack_namer;
  std::shared_ptr<SampleEffects> sample_effects;
  std::shared_ptr<StreamWatcher> watcher;
  // Learns which hangs the daemon blames this host for. nullptr means the daemon is not asked.
  std::shared_ptr<HostHangsSink> host_hangs;
};

// The channel for the next try to reach the daemon. A channel of the last try would be late: gRPC
// looks after an unused channel every five seconds only, and waits by the wall clock, which can be
// set back.
using ChannelSource = std::function<std::shared_ptr<grpc::ChannelInterface>()>;

class Agent {
 public:
  Agent(AgentOptions options, ChannelSource channels);
  // Uses one channel for all tries: for a daemon in this process.
  Agent(AgentOptions options, std::shared_ptr<grpc::ChannelInterface> channel);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  void Start();
  // Sends one last tick, then stops. After three seconds (kStopTimeout in agent.cc) Stop() cancels
  // a stream that the daemon does not read. Safe to call twice.
  void Stop();

  // Returns whether the ticks progress. An agent that waits for its daemon is alive.
  bool IsAlive() const;
  bool is_connected() const { return is_connected_; }

  // The next tick is due now.
  void TickSoon() { inbox_.TickSoon(); }

  // Whether any watched process has created a communicator. Call it after Stop() only.
  bool seen_communicators() const { return collector_.seen_communicators(); }

 private:
  void RunUplink();
  v1::AgentMessage MakeHello() const;
  void WarnOfFailure(const grpc::Status& failure) const;
  // Or until the daemon may not be believed any more.
  bool TickUntilBroken(DaemonStream* stream);
  int64_t TickNs(const DaemonStream& stream) const;
  void Collect(bool whole, v1::Tick* tick);
  void CollectAndSend(bool whole, DaemonStream* stream);
  void SendLastTicks(bool whole, DaemonStream* stream);
  void SendAnswersUntil(int64_t until_ns, DaemonStream* stream);
  void SendUnrecorded(DaemonStream* stream);
  void ForgetStream();

  const AgentOptions options_;
  const ChannelSource channels_;
  Collector collector_;  // used by the uplink thread only, but for served()
  UplinkInbox inbox_;
  UnrecordedList unrecorded_;
  HostHangsRelay host_hangs_;
  StackAnswers stacks_;
  HostFactsAnswers host_facts_;
  QuitAnswers quit_answers_;
  PauseWatch pauses_;
  StreamCutter cutter_;

  std::atomic<int64_t> collects_since_ns_{0};  // 0 if it does not collect now
  std::atomic<bool> is_connected_{false};      // the daemon has welcomed the newest stream
  uint64_t dropped_ticks_ = 0;                 // used by the uplink thread only
  std::thread uplink_;
};

// Starts them, or writes to the log why not.
void StartQuitAnswers(QuitAnswers* answers);

}  // namespace rollcall
