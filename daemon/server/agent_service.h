// SPDX-License-Identifier: Apache-2.0
// The daemon's end of the link to its agents. Uses gRPC's callback API: a
// thread for each of thousands of streams would cost ten times as much.
//
// Knows nothing of jobs: what arrives goes to an AgentSink, and requests for
// stacks go out by the agent's id.
//
// Thread-safe. Its locks are taken last and keep a stream's writes in order, so they
// are held while gRPC queues a write; the sink is called with none of them held.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "daemon/server/agent_name.h"

namespace grpc {
class Service;
}

namespace rollcall {

namespace v1 {
class DaemonMessage;
class StackReply;
class Tick;
}  // namespace v1

// Called from gRPC's threads, for one stream one at a time.
class AgentSink {
 public:
  virtual ~AgentSink() = default;
  virtual void OnTick(const AgentName& agent, const v1::Tick& tick) = 0;
  virtual void OnStack(const AgentName& agent, const v1::StackReply& reply) = 0;
  virtual void OnConnected(const AgentName& agent) = 0;
  virtual void OnGone(const AgentName& agent) = 0;
};

class AgentService {
 public:
  explicit AgentService(AgentSink* sink);
  ~AgentService();

  // To be registered with a server that this object outlives.
  grpc::Service* service();

  // Queues a message for the agent of this id. False: it is not connected.
  bool Send(const std::string& id, const v1::DaemonMessage& message);

  // Ends the agent's streams: it comes back, and tells everything anew.
  void Restart(const std::string& id);

  int agents() const;

  // Ends all streams, so that the server can shut down.
  void CloseAll();

 private:
  class Impl;
  class Stream;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rollcall
