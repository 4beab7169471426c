// SPDX-License-Identifier: Apache-2.0
// The daemon's gRPC server: its address, its limits, and a channel to it within the process. All
// settings of gRPC on this side are here.
//
// For the daemon only, which starts and stops it from one thread. Owns gRPC's threads, which call
// the services. No lock.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace grpc {
class ChannelInterface;
class Server;
class Service;
}  // namespace grpc

namespace rollcall {

class GrpcServer {
 public:
  GrpcServer();
  ~GrpcServer();
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;

  // `address`: HOST:PORT, port 0 for any free one; "" for no other process. The services outlive
  // this object. kUnavailable: the address cannot be used; says what to type.
  absl::Status Start(const std::string& address, const std::vector<grpc::Service*>& services);

  // Lets calls end for a moment, cancels them then, and returns when all have ended. May be called
  // twice.
  void Stop();

  int port() const { return port_; }  // 0: none
  std::shared_ptr<grpc::ChannelInterface> InProcessChannel();

 private:
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

}  // namespace rollcall
