// SPDX-License-Identifier: Apache-2.0
// A gRPC server that answers each message of a stream with a message, and remembers what the last
// caller of GetStatus presented.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "eventually.h"
#include "rollcall/v1/agent.grpc.pb.h"
#include "rollcall/v1/query.grpc.pb.h"
#include "security/grpc/credentials.h"

namespace rollcall {

class EchoReactor : public grpc::ServerBidiReactor<v1::AgentMessage, v1::DaemonMessage> {
 public:
  EchoReactor() { StartRead(&message_); }
  void OnReadDone(bool ok) override {
    if (ok) {
      StartWrite(&answer_);
    } else {
      Finish(grpc::Status::OK);
    }
  }
  void OnWriteDone(bool ok) override {
    if (ok) StartRead(&message_);
  }
  void OnDone() override { delete this; }

 private:
  v1::AgentMessage message_;
  v1::DaemonMessage answer_;
};

class EchoLink : public v1::AgentLink::CallbackService {
  grpc::ServerBidiReactor<v1::AgentMessage, v1::DaemonMessage>* Connect(
      grpc::CallbackServerContext*) override {
    return new EchoReactor;
  }
};

class RememberingQuery : public v1::Query::CallbackService {
 public:
  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context,
                                      const v1::StatusRequest*, v1::StatusResponse*) override {
    {
      const absl::MutexLock lock(&mutex_);
      last_ = PresentedBy(*context);
    }
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  Presented last() const {
    const absl::MutexLock lock(&mutex_);
    return last_;
  }

 private:
  mutable absl::Mutex mutex_;
  Presented last_ ABSL_GUARDED_BY(mutex_);
};

class EchoServer {
 public:
  explicit EchoServer(const std::shared_ptr<grpc::ServerCredentials>& credentials,
                      const std::string& address = "127.0.0.1:0") {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, credentials, &port_);
    builder.RegisterService(&link_);
    builder.RegisterService(&query_);
    server_ = builder.BuildAndStart();
  }
  ~EchoServer() {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }

  bool started() const { return server_ != nullptr; }
  std::string address(const std::string& host = "127.0.0.1") const {
    return absl::StrCat(host, ":", port_);
  }
  Presented last() const { return query_.last(); }
  std::shared_ptr<grpc::Channel> InProcess() const { return server_->InProcessChannel({}); }

 private:
  EchoLink link_;
  RememberingQuery query_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// Of one call on a connection of its own.
inline grpc::Status CallOnce(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  v1::StatusResponse response;
  return v1::Query::NewStub(channel)->GetStatus(&context, {}, &response);
}

// Another channel with the same arguments would share the connection.
inline grpc::ChannelArguments OwnConnection() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return arguments;
}

}  // namespace rollcall
