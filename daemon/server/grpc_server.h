// SPDX-License-Identifier: Apache-2.0
// The daemon's gRPC server: its address, its limits, and a channel to it inside the process. All
// gRPC settings of the daemon are here.
//
// Only the daemon uses it, and starts and stops it from one thread. Owns gRPC's threads, which call
// the services. No lock.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace grpc {
class ChannelInterface;
class Server;
class ServerCredentials;
class Service;
}  // namespace grpc

namespace rollcall {

// Lets gRPC read into small buffers, unless GRPC_EXPERIMENTS is set: a tick that waits keeps the whole
// buffer. Call it before the first use of gRPC and before the first thread.
void ReadIntoSmallBuffers();

class GrpcServer {
 public:
  GrpcServer();
  ~GrpcServer();
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;

  // `address` is HOST:PORT, with port 0 for any free one, or unix:PATH, whose socket belongs to this
  // user alone; "" accepts no other process. The services must outlive this object. Returns kUnavailable if the address is unusable; the error says what
  // to type.
  absl::Status Start(const std::string& address,
                     const std::shared_ptr<grpc::ServerCredentials>& credentials,
                     const std::vector<grpc::Service*>& services);

  // Gives calls a moment to end, then cancels them; returns when all have ended. May be called
  // twice.
  void Stop();

  int port() const { return port_; }  // 0: none
  std::shared_ptr<grpc::ChannelInterface> InProcessChannel();

 private:
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

}  // namespace rollcall
