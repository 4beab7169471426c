// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/grpc_server.h"

#include <grpcpp/grpcpp.h>

#include <chrono>

#include "absl/strings/str_cat.h"
#include "proto/message_limit.h"

namespace rollcall {
namespace {

constexpr std::chrono::seconds kCallsEndWithin{2};

void SetLimits(grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(kMaxMessageBytes);
  // Two daemons must not share a port unnoticed.
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // A host that lost its power says no goodbye.
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 5'000);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
}

}  // namespace

GrpcServer::GrpcServer() = default;
GrpcServer::~GrpcServer() { Stop(); }

absl::Status GrpcServer::Start(const std::string& address,
                               const std::vector<grpc::Service*>& services) {
  grpc::ServerBuilder builder;
  SetLimits(&builder);
  if (!address.empty()) {
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port_);
  }
  for (grpc::Service* service : services) builder.RegisterService(service);
  server_ = builder.BuildAndStart();
  if (server_ != nullptr && (address.empty() || port_ != 0)) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cannot listen on ", address,
                   ": the address is taken or not this machine's\n"
                   "  another one?  --listen=HOST:PORT   (port 0: any free one)"));
}

void GrpcServer::Stop() {
  if (server_ == nullptr) return;
  server_->Shutdown(std::chrono::system_clock::now() + kCallsEndWithin);
  server_->Wait();
  server_.reset();
}

std::shared_ptr<grpc::ChannelInterface> GrpcServer::InProcessChannel() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  return server_->InProcessChannel(arguments);
}

}  // namespace rollcall
