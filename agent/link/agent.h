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
// With CollectorOptions::find_unrecorded the agent also tells the daemon which ranks run here
// without the library. It takes nothing from them unless the daemon asks.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "agent/collector/collector.h"
#include "agent/link/host_facts_service.h"
#include "agent/link/host_hangs_sink.h"
#include "agent/link/stack_queue.h"
#include "agent/link/stack_service.h"
#include "agent/link/wait_floor.h"
#include "agent/stacks/quit_answers.h"
#include "base/mutex.h"
#include "base/worker.h"

namespace grpc {
class ChannelInterface;
class ClientContext;
class Status;
}  // namespace grpc

namespace rollcall {

// What one agent of several, each with a daemon of its own, tells the others about its stream, and
// learns from them. Thread-safe.
class StreamWatcher {
 public:
  virtual ~StreamWatcher() = default;

  // The daemon has welcomed the stream. False: the agent shall connect anew, at once.
  virtual bool Welcomed(const v1::Welcome& welcome) = 0;
  virtual void Told(const v1::Owners& owners) = 0;
  // The stream, or the try to open it, has failed. The agent tries again.
  virtual void Broken() = 0;
  // Before each tick: whether it must be whole.
  virtual bool WantsWhole() = 0;
};

struct AgentOptions {
  CollectorOptions collector;
  std::string host;               // name of this host in verdicts; "": the system's host name
  int64_t tick_ns = 100'000'000;  // from one tick to the next, unless the daemon asks for fewer
  // Says why a stream failed, for the log; may take seconds. Empty: the stream's own message.
  std::function<std::string(const grpc::Status&)> explain;
  // Whether the daemon of a stream may still be believed, asked every ten seconds. Empty: always.
  std::function<bool(const grpc::ClientContext&)> still_trusts;
  // Processes whose stacks the agent takes for the daemon; 0: no limit.
  int64_t max_stacks_per_minute = 600;
  bool stacks_on = true;     // false: the agent takes no stacks at all
  bool answers_quit = true;  // SIGQUIT of the processes; false: another agent of this process does
  HostFactsOptions host_facts;
  // Of several agents in one process: what they share. nullptr: the agent is alone, and has one
  // daemon for all jobs.
  std::shared_ptr<StackAllowance> stack_allowance;
  std::shared_ptr<StackNamer> stack_namer;
  std::shared_ptr<SampleEffects> sample_effects;
  std::shared_ptr<StreamWatcher> watcher;
  // Learns which hangs the daemon blames this host for. nullptr: the daemon is not asked.
  std::shared_ptr<HostHangsSink> host_hangs;
};

// The channel for the next try to reach the daemon. A channel of the last try would be late: gRPC
// looks after a channel that nobody uses every five seconds only, and waits by the wall clock,
// which can be set back.
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

  // Whether the ticks progress. An agent that waits for its daemon is alive.
  bool IsAlive() const;
  bool is_connected() const { return is_connected_; }

  // The next tick is due now.
  void TickSoon();

  // Whether any watched process has created a communicator. Call it after Stop() only.
  bool seen_communicators() const { return collector_.seen_communicators(); }

 private:
  class Link;
  void RunUplink();
  std::shared_ptr<grpc::ClientContext> NewContext();
  bool AwaitWelcome(const Link& link);
  void WarnOfFailure(const grpc::Status& failure) const;
  // Or until the daemon may not be believed any more.
  bool TickUntilBroken(Link* link);
  void Collect(bool whole, v1::Tick* tick);
  void CollectAndSend(bool whole, Link* link);
  void SendLastTicks(bool whole, Link* link);
  void SendAnswersUntil(int64_t until_ns, Link* link);
  void SendUnrecorded(Link* link);
  bool IsListed(ProcessId process);
  // Of the process whose stacks are taken. Of them the service takes those of the same user.
  std::vector<pid_t> Neighbours();
  void CloseLink();
  void SetPace(int64_t tick_ns);
  void CutOffWhenLate();
  void RunStacks();
  void AnswerWithHostFacts(const PendingRequest& request);
  void Answer(const PendingRequest& request);
  void TakeIn(PendingRequest request);
  void TakeInHostFacts(const PendingRequest& request);
  void TakeInHostHangs(const v1::HostHangs& hangs);
  void PassOnHostHangs();
  bool HandOver(const PendingRequest& request, ProcessId process, v1::ProcessStack stack,
                const std::optional<v1::Evidence>& evidence = std::nullopt);
  bool HandOver(uint64_t stream, v1::AgentMessage answer);
  uint64_t StreamNumber();
  void Sleep(int64_t ns);  // returns early when the agent stops
  bool stopping();

  const AgentOptions options_;
  const ChannelSource channels_;
  Collector collector_;  // used by the uplink thread only

  Mutex mutex_;
  Condition changed_;  // any of the members that the mutex guards
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool uplink_runs_ ABSL_GUARDED_BY(mutex_) = false;
  bool tick_soon_ ABSL_GUARDED_BY(mutex_) = false;
  bool cut_off_ ABSL_GUARDED_BY(mutex_) = false;  // streams must not block any longer
  uint64_t stream_ ABSL_GUARDED_BY(mutex_) = 0;   // number of the newest stream
  std::shared_ptr<grpc::ClientContext> context_ ABSL_GUARDED_BY(mutex_);  // of the newest stream
  StackQueue stack_requests_ ABSL_GUARDED_BY(mutex_);
  // As the daemon of the newest stream said last.
  std::optional<v1::HostHangs> host_hangs_ ABSL_GUARDED_BY(mutex_);
  std::optional<v1::AgentMessage> answer_ ABSL_GUARDED_BY(mutex_);  // the uplink sends it next
  // The ranks without the library of which the daemon of the newest stream knows.
  std::set<ProcessId> listed_ ABSL_GUARDED_BY(mutex_);

  std::atomic<int64_t> collects_since_ns_{0};  // 0: it does not collect now
  std::atomic<bool> is_connected_{false};      // the daemon has welcomed the newest stream
  std::atomic<int64_t> tick_ns_{0};            // from one tick to the next, as the daemon wants it
  PauseWatch pauses_;
  StackService stack_service_;           // Take(): used by the stacks thread only
  ProcessId sampled_;                    // likewise: of which it takes the stacks now
  HostFactsService host_facts_service_;  // Take(): used by the host-facts thread only

  QuitAnswers quit_answers_;

  uint64_t dropped_ticks_ = 0;  // used by the uplink thread only, like the next
  int64_t passed_on_ns_ = 0;    // when host_hangs_ was passed on
  int64_t listed_ns_ = 0;       // when the list of ranks without the library was made; 0: never
  std::string listed_text_;     // that list, as the stream has it
  std::thread uplink_, stacks_;
  Worker host_facts_;
};

// Starts them, or writes to the log why not.
void StartQuitAnswers(QuitAnswers* answers);

}  // namespace rollcall
