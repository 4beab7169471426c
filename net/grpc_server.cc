// SPDX-License-Identifier: Apache-2.0
#include "net/grpc_server.h"

#include <grpcpp/grpcpp.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <chrono>
#include <utility>

#include "base/descriptors.h"
#include "net/grpc_acceptor.h"
#include "net/guarded_reads.h"
#include "net/listen_sockets.h"
#include "proto/message_limit.h"

namespace rollcall {
namespace {

constexpr std::chrono::seconds kCallsEndWithin{2};
// What a stream may receive of unread messages. An agent's next ticks wait there while the daemon
// is late, so thousands of streams fill it. A message that is being read has all the room that it
// needs.
constexpr int kBytesAhead = 16 << 10;
// The size of a buffer for reading. gRPC 1.51 heeds it only without the experiment tcp_read_chunks,
// with which a buffer has 64 KiB after one long message.
constexpr int kReadBytes = 8 << 10;
// The time for a handshake and the client's settings. The acceptor's limit is shorter; this one
// holds also for the sockets of this user.
constexpr int kHandshakeMs = 20'000;

using ExternalConnection = grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters;

// The streams of one connection at once. An agent has one, a person's command some, and another
// daemon one for each query that it passes on; their clients wait for a free one.
constexpr int kStreams = 100;
constexpr int kHeaderBytes = 8 << 10;  // with a token of an issuer

// Only this user can connect to one.
bool IsOfUnixSocket(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  return getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
         address.ss_family == AF_UNIX;
}

void Guard(int fd, bool is_tls) {
  const bool is_of_this_user = IsOfUnixSocket(fd);
  if (is_of_this_user && !is_tls) return;
  GuardConnection(fd, is_tls);
  struct stat socket = {};
  if (is_of_this_user && fstat(fd, &socket) == 0) AdmitGuarded(fd, socket.st_ino);
}

void SetLimits(grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(kMaxMessageBytes);
  // gRPC 1.51 has no limit for what a compressed message becomes. No client sends one.
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  // These hold once the client has acknowledged them; Http2Guard holds always.
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreams);
  builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kHeaderBytes);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kBytesAhead);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);  // it would raise kBytesAhead
  builder->AddChannelArgument(GRPC_ARG_TCP_READ_CHUNK_SIZE, kReadBytes);
  builder->AddChannelArgument(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, kReadBytes);
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
  // A host without power does not close its connection. These times are minutes: on an overloaded
  // machine the answer to a ping is late too, and a live stream must not be closed for that.
  // Missing ticks show much earlier that an agent is silent.
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 120'000);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 60'000);
  // Agents that can go to another daemon ask every 1.5 seconds whether this one is there.
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1'000);
}

}  // namespace

void ReadIntoSmallBuffers() { setenv("GRPC_EXPERIMENTS", "-tcp_read_chunks", /*overwrite=*/0); }

GrpcServer::GrpcServer() = default;
GrpcServer::~GrpcServer() { Stop(); }

absl::Status GrpcServer::Start(const std::string& address,
                               const std::shared_ptr<grpc::ServerCredentials>& credentials,
                               const std::vector<grpc::Service*>& services,
                               grpc::CallbackGenericService* others, bool is_tls, Refused refused) {
  grpc::ServerBuilder builder;
  SetLimits(&builder);
  std::vector<int> listeners;
  if (!address.empty()) {
    auto sockets = ListenSockets::Open(address);
    if (!sockets.ok()) return sockets.status();
    sockets_ = std::make_unique<ListenSockets>(*std::move(sockets));
    into_grpc_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, credentials);
  }
  for (grpc::Service* service : services) builder.RegisterService(service);
  builder.RegisterCallbackGenericService(others);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return absl::UnavailableError("cannot start the gRPC server");
  return address.empty() ? absl::OkStatus() : Accept(is_tls, std::move(refused));
}

absl::Status GrpcServer::Accept(bool is_tls, Refused refused) {
  GrpcAcceptorOptions options;
  options.limits = PendingLimitsFor(DescriptorLimit());
  options.refused = std::move(refused);
  options.admitted = AdmitGuarded;
  options.has_called = HasCalledGuarded;
  options.ended = EndGuarded;
  options.hand_over = [this, is_tls](int fd) {
    Guard(fd, is_tls);
    ExternalConnection connection;
    connection.fd = fd;
    into_grpc_->HandleNewConnection(&connection);
  };
  acceptor_ = std::make_unique<GrpcAcceptor>(sockets_->Release(), std::move(options));
  if (acceptor_->Start()) return absl::OkStatus();
  return absl::UnavailableError("no file descriptor is free (ulimit -n, LimitNOFILE=)");
}

void GrpcServer::Admit(const std::string& peer) {
  if (acceptor_ != nullptr) acceptor_->Admit(peer);
}

std::string GrpcServer::LocalAddressOf(const std::string& peer) const {
  return acceptor_ == nullptr ? "" : acceptor_->LocalAddressOf(peer);
}

bool GrpcServer::IsStarved() const { return acceptor_ != nullptr && acceptor_->IsStarved(); }

int GrpcServer::port() const { return sockets_ == nullptr ? 0 : sockets_->port(); }

void GrpcServer::Stop() {
  if (server_ == nullptr) return;
  // gRPC takes no connection after its end.
  if (acceptor_ != nullptr) acceptor_->Stop();
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
