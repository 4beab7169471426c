// SPDX-License-Identifier: Apache-2.0
#include "tests/fleet/stream.h"

#include "absl/strings/str_cat.h"
#include "proto/message_limit.h"

namespace rollcall::fleet {
namespace {

// The rest is what an agent sets (agent/link/daemon_channel.cc).
std::shared_ptr<grpc::Channel> ConnectAlone(
    const std::string& daemon, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection for each channel
  arguments.SetInt(GRPC_ARG_ENABLE_CHANNELZ, 0);
  arguments.SetInt(GRPC_ARG_MAX_CHANNEL_TRACE_EVENT_MEMORY_PER_NODE, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 120'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 60'000);
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  return grpc::CreateCustomChannel(absl::StrCat("ipv4:", daemon), credentials, arguments);
}

}  // namespace

Stream::Stream(const std::string& daemon,
               const std::shared_ptr<grpc::ChannelCredentials>& credentials, StreamOwner* owner,
               grpc::CompletionQueue* queue)
    : owner_(owner),
      stub_(v1::AgentLink::NewStub(ConnectAlone(daemon, credentials))),
      rpc_(stub_->AsyncConnect(&context_, queue, &start_)) {}

void Stream::Handle(void* tag, bool ok) {
  const Step* step = static_cast<Step*>(tag);
  (step->stream->*step->done)(ok);
}

void Stream::OnStart(bool ok) {
  if (!ok) return Finish();
  connected_ = true;
  rpc_->Read(&in_, &read_);
  owner_->OnConnected();
}

void Stream::OnRead(bool ok) {
  if (!ok) {
    ending_ = true;
    if (!writing_) Finish();
    return;
  }
  owner_->OnMessage(in_);
  rpc_->Read(&in_, &read_);
}

void Stream::Write(const v1::AgentMessage& message) {
  writing_ = true;
  rpc_->Write(message, &write_);
}

void Stream::OnWrite(bool ok) {
  writing_ = false;
  if (ending_) return Finish();
  if (ok) owner_->OnWritten();  // otherwise the read fails too
}

void Stream::Finish() {
  ending_ = true;
  rpc_->Finish(&status_, &finish_);
}

void Stream::OnFinish(bool) { owner_->OnClosed(status_); }

}  // namespace rollcall::fleet
