// The daemon's end of the link to its agents. Uses gRPC's callback API: a
// thread for each of thousands of streams would cost ten times as much.
//
// Knows nothing of jobs: what arrives goes to an AgentSink, and requests for
// stacks go out by host.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace grpc {
class Service;
}

namespace rollcall {

namespace v1 {
class DaemonMessage;
class StackReply;
class Tick;
}  // namespace v1

// Called from gRPC's threads, for one agent one at a time.
class AgentSink {
 public:
  virtual ~AgentSink() = default;
  virtual void OnTick(const std::string& host, const v1::Tick& tick) = 0;
  virtual void OnStack(const std::string& host, const v1::StackReply& reply) = 0;
  virtual void OnConnected(const std::string& host) = 0;
  virtual void OnGone(const std::string& host) = 0;
};

class AgentService {
 public:
  explicit AgentService(AgentSink* sink);
  ~AgentService();

  // To be registered with a server that this object outlives.
  grpc::Service* service();

  // Queues a message for the host's agent. False: it is not connected.
  bool Send(const std::string& host, const v1::DaemonMessage& message);

  int agents() const;

  // Ends all streams, so that the server can shut down.
  void CloseAll();

 private:
  class Impl;
  class Stream;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rollcall
