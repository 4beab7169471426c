// SPDX-License-Identifier: Apache-2.0
#include "agent/daemon_channel.h"

#include <grpcpp/grpcpp.h>

#include "proto/message_limit.h"

namespace rollcall {
namespace {

// A daemon's host that vanishes leaves the connection open for hours. Not seconds: a daemon that
// was held for a while would lose all its agents at once, and they would all come back at once.
constexpr int kKeepaliveMs = 120'000;
constexpr int kKeepaliveTimeoutMs = 60'000;
constexpr int kLongestBackoffMs = 5'000;

}  // namespace

std::shared_ptr<grpc::Channel> ConnectToDaemon(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kLongestBackoffMs);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace rollcall
