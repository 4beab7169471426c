// SPDX-License-Identifier: Apache-2.0
// The agent of a host whose jobs may have several daemons: an agent with one stream for each daemon
// that owns a job on this host, and for the daemon of a host without jobs. JobOwners decides which
// these are.
//
// With one daemon that is alone, it is one agent with one stream and no more. Each stream has a
// collector of its own, which reads the segments of the stream's jobs only. All share the limits of
// stacks and of looks at the host.
//
// A thread opens streams at once when a job needs them, and closes those that nothing has needed
// for half a minute. Start() returns at once; the destructor stops the threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/link/agent.h"
#include "agent/link/job_owners.h"
#include "agent/processes/spare_threads.h"
#include "agent/stacks/quit_answers.h"
#include "base/mutex.h"
#include "base/worker.h"

namespace rollcall {

// How the agent reaches one daemon.
struct DaemonWay {
  // A new channel for the next try. `is_quick`: it must notice within seconds that the daemon is
  // lost.
  std::function<std::shared_ptr<grpc::ChannelInterface>(bool is_quick)> connect;
  std::function<std::string(const grpc::Status&)> explain;       // as in AgentOptions
  std::function<bool(const grpc::ClientContext&)> still_trusts;  // as in AgentOptions
};

struct FleetAgentOptions {
  AgentOptions agent;  // of each stream; what depends on one daemon above comes from `way_to`
  std::vector<std::string> given;  // the daemons to begin with, at least one
  std::function<DaemonWay(const std::string& address)> way_to;
  // The daemons to begin with, as they are now, asked in a thread of its own every ten seconds; may
  // block. If empty, they stay as given.
  std::function<std::vector<std::string>()> find_given;
  int64_t keep_unneeded_ns = 30'000'000'000;  // streams
};

class FleetAgent {
 public:
  explicit FleetAgent(FleetAgentOptions options);
  ~FleetAgent();
  FleetAgent(const FleetAgent&) = delete;
  FleetAgent& operator=(const FleetAgent&) = delete;

  void Start();
  // Sends the last ticks on every stream, then stops, as Agent::Stop(). Safe to call twice.
  void Stop();

  bool IsAlive() const;                        // as Agent::IsAlive(), of all streams
  std::vector<std::string> Connected() const;  // the addresses of the streams that are welcome
  // Call it after Stop() only.
  bool seen_communicators() const { return seen_communicators_; }

 private:
  class Watcher;
  struct Uplink {
    std::unique_ptr<Agent> agent;
    int64_t unneeded_since_ns = 0;  // 0 if it is needed
  };
  // The result of the newest look for the daemons to begin with.
  struct Found {
    Mutex mutex;
    std::optional<std::vector<std::string>> given ABSL_GUARDED_BY(mutex);
  };

  int64_t Arrange(int64_t now_ns);
  void LookForGiven(int64_t now_ns);
  void OpenMissing(const std::set<std::string>& needed, int64_t now_ns);
  void CloseUnneeded(const std::set<std::string>& needed, int64_t now_ns);
  bool TickOnNews();
  std::unique_ptr<Agent> MakeAgent(const std::string& address);
  void StopAll(std::map<std::string, Uplink> uplinks);

  const FleetAgentOptions options_;
  const std::shared_ptr<JobOwners> owners_;
  const AgentOptions agent_options_;
  const std::shared_ptr<Found> found_ = std::make_shared<Found>();
  QuitAnswers quit_answers_;
  SpareThreads threads_;  // for `find_given`

  mutable Mutex mutex_;
  std::map<std::string, Uplink> uplinks_ ABSL_GUARDED_BY(mutex_);  // by the address of the stream

  // Used by the thread only, and by Stop() after it.
  std::vector<std::future<void>> closing_;
  int64_t looked_ns_ = 0;
  int64_t ticked_ns_ = 0;
  uint64_t ticked_version_ = 0;
  std::atomic<bool> seen_communicators_{false};
  bool has_started_ = false;
  Worker worker_;
};

}  // namespace rollcall
