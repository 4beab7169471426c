// SPDX-License-Identifier: Apache-2.0
// The daemon's end of the link to its agents. Uses gRPC's callback API: one thread for each of
// thousands of streams would cost ten times as much.
//
// Does not interpret jobs: it passes messages to an AgentSink and sends stack requests by agent id.
//
// Thread-safe. Its mutexes come last in the lock order. They keep a stream's writes in order, so a
// thread holds one while gRPC queues a write. No thread holds one while it calls the sink.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/access/agent_name.h"
#include "daemon/agents/stream_limits.h"
#include "daemon/jobs/daemon_counters.h"

namespace grpc {
class Service;
}

namespace rollcall {

class Access;

namespace v1 {
class DaemonMessage;
class HostFactsReply;
class LookAtRanksReply;
class StackReply;
class Tick;
class UnrecordedProcesses;
}  // namespace v1

// gRPC's threads call this, at most one thread at a time for each stream. It must not wait: the
// same threads answer the keepalive pings of all streams.
class AgentSink {
 public:
  virtual ~AgentSink() = default;
  // The stream is read again after a call of `applied`, on any thread. So a slow daemon slows its
  // agents, and an unapplied tick delays no other stream.
  virtual void OnTick(const AgentName& agent, std::shared_ptr<const v1::Tick> tick,
                      std::function<void()> applied) = 0;
  virtual void OnStackReply(const AgentName& agent, const v1::StackReply& reply) = 0;
  virtual void OnHostFacts(const AgentName& agent, const v1::HostFactsReply& reply) = 0;
  // To LookAtRanks.
  virtual void OnRanks(const AgentName& agent, const v1::LookAtRanksReply& reply) = 0;
  virtual void OnUnrecorded(const AgentName& agent, const v1::UnrecordedProcesses& list) = 0;
  virtual void OnConnected(const AgentName& agent) = 0;
  virtual void OnDisconnected(const AgentName& agent) = 0;
};

class AgentService {
 public:
  // All must outlive this object. `counters`: counts what exceeds a limit; may be nullptr.
  // `access`: admits agents; nullptr means all of them, for every host.
  explicit AgentService(AgentSink* sink, DaemonCounters* counters = nullptr,
                        const Access* access = nullptr, StreamLimits limits = {});
  ~AgentService();

  // Register it with a server. This object must outlive the server.
  grpc::Service* service();

  // Queues a message for the agent with this id. Returns false if that agent is not connected.
  bool Send(const std::string& id, const v1::DaemonMessage& message);

  // Ends the agent's streams. The agent then reconnects and sends its whole state again.
  void Restart(const std::string& id);

  // Ends the streams whose certificate or token is no longer valid at this Unix time, and logs
  // whose they are.
  void EndInvalid(int64_t now_s);

  int agents() const;
  // Open streams, also of agents that have not sent their hello.
  size_t streams() const;

  // Ends all streams, so that the server can shut down.
  void CloseAll();

 private:
  class Impl;
  class Stream;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rollcall
