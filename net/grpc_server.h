// SPDX-License-Identifier: Apache-2.0
// The daemon's gRPC server: its address, its limits, and a channel to it inside the process. All
// gRPC settings of the daemon are here.
//
// Only the daemon uses it, and starts and stops it from one thread. Owns gRPC's threads, which call
// the services. No lock.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace grpc {
class CallbackGenericService;
class ChannelInterface;
class Server;
class ServerCredentials;
class Service;
namespace experimental {
class ExternalConnectionAcceptor;
}
}  // namespace grpc

namespace rollcall {

class GrpcAcceptor;
class ListenSockets;

// Lets gRPC read into small buffers, unless GRPC_EXPERIMENTS is set: a tick that waits keeps the
// whole buffer. Call it before the first use of gRPC and before the first thread.
void ReadIntoSmallBuffers();

class GrpcServer {
 public:
  GrpcServer();
  ~GrpcServer();
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;

  // Told of each connection that the server closed before it knew the caller: why, as a label of
  // rollcall_refused_total, and a text for the log. Thread-safe.
  using Refused = std::function<void(const std::string& reason, const std::string& text)>;

  // `address` as in ListenSockets; "" accepts no other process. `others` answers the calls that no
  // service has; all of them must outlive this object. `is_tls`: whether the credentials are of
  // TLS. Returns kUnavailable if the address is unusable; the error names what to type.
  absl::Status Start(const std::string& address,
                     const std::shared_ptr<grpc::ServerCredentials>& credentials,
                     const std::vector<grpc::Service*>& services,
                     grpc::CallbackGenericService* others, bool is_tls, Refused refused = nullptr);

  // The caller at this peer (as Presented names it) is known: the connection may stay. Thread-safe.
  void Admit(const std::string& peer);
  // The address of this host at which the connection of a peer on loopback arrived, in the form of
  // Presented; empty if unknown. Thread-safe.
  std::string LocalAddressOf(const std::string& peer) const;
  // Whether clients have waited for some seconds, because no file descriptor is free. Thread-safe.
  bool IsStarved() const;

  // Gives calls a moment to end, then cancels them; returns when all have ended. May be called
  // twice.
  void Stop();

  int port() const;  // 0 if there is none
  std::shared_ptr<grpc::ChannelInterface> InProcessChannel();

 private:
  absl::Status Accept(bool is_tls, Refused refused);

  std::unique_ptr<ListenSockets> sockets_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> into_grpc_;
  std::unique_ptr<GrpcAcceptor> acceptor_;  // nullptr if there is no address
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace rollcall
