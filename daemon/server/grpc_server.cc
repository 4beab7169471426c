// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/grpc_server.h"

#include <grpcpp/grpcpp.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <chrono>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/message_limit.h"

namespace rollcall {
namespace {

constexpr std::chrono::seconds kCallsEndWithin{2};
// What a stream may receive of messages that nobody reads yet. An agent's next ticks wait there while
// the daemon is late, so thousands of streams fill it. A message that is being read has all the room
// that it needs.
constexpr int kBytesAhead = 16 << 10;
// Of a buffer for reading. gRPC 1.51 heeds it only without the experiment tcp_read_chunks, with which
// a buffer has 64 KiB after one long message.
constexpr int kReadBytes = 8 << 10;
constexpr char kUnix[] = "unix:";

void SetLimits(grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kBytesAhead);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // it would raise kBytesAhead
  builder->AddChannelArgument(GRPC_ARG_TCP_READ_CHUNK_SIZE, kReadBytes);
  builder->AddChannelArgument(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, kReadBytes);
  // Two daemons must not share a port.
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // A host without power does not close its connection. These times are minutes: on an overloaded
  // machine the answer to a ping is late too, and a live stream must not be closed for that. Missing
  // ticks show much earlier that an agent is silent.
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 120'000);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 60'000);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
}

// Whoever may connect to a unix socket is the owner, so its mode is 0600 from the beginning. Files that
// other threads create meanwhile get fewer rights, too; nothing is wrong with that.
std::unique_ptr<grpc::Server> StartPrivately(const std::string& address,
                                             grpc::ServerBuilder* builder) {
  const mode_t before = umask(0077);
  std::unique_ptr<grpc::Server> server = builder->BuildAndStart();
  umask(before);
  const std::string path = address.substr(sizeof(kUnix) - 1);
  if (server != nullptr && chmod(path.c_str(), 0600) != 0) return nullptr;
  return server;
}

}  // namespace

void ReadIntoSmallBuffers() { setenv("GRPC_EXPERIMENTS", "-tcp_read_chunks", /*overwrite=*/0); }

GrpcServer::GrpcServer() = default;
GrpcServer::~GrpcServer() { Stop(); }

absl::Status GrpcServer::Start(const std::string& address,
                               const std::shared_ptr<grpc::ServerCredentials>& credentials,
                               const std::vector<grpc::Service*>& services) {
  grpc::ServerBuilder builder;
  SetLimits(&builder);
  if (!address.empty()) {
    builder.AddListeningPort(address, credentials, &port_);
  }
  for (grpc::Service* service : services) builder.RegisterService(service);
  server_ = absl::StartsWith(address, kUnix) ? StartPrivately(address, &builder)
                                             : builder.BuildAndStart();
  if (server_ != nullptr && (address.empty() || port_ != 0)) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cannot listen on ", address,
                   ": the address is in use or belongs to another machine\n"
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
