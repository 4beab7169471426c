// SPDX-License-Identifier: Apache-2.0
// One stream to the daemon over a TCP connection of its own.
//
// All of it runs on the thread that takes events from the completion queue, and so do the calls to
// the owner. A stream ends in one way: OnClosed(), once, after which nothing of it is under way and
// the owner may destroy it.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "rollcall/v1/agent.grpc.pb.h"

namespace rollcall::fleet {

class StreamOwner {
 public:
  virtual ~StreamOwner() = default;
  virtual void OnConnected() = 0;
  virtual void OnMessage(const v1::DaemonMessage& message) = 0;
  // The message before has been taken: the next may be written.
  virtual void OnWritten() = 0;
  // The last call of the stream; the owner may destroy it here.
  virtual void OnClosed(const grpc::Status& status) = 0;
};

class Stream {
 public:
  // What the completion queue returns: a step of a stream that is done.
  struct Step {
    Stream* stream;
    void (Stream::*done)(bool ok);
  };

  // Connects. `owner` and `queue` outlive the stream.
  Stream(const std::string& daemon, const std::shared_ptr<grpc::ChannelCredentials>& credentials,
         StreamOwner* owner, grpc::CompletionQueue* queue);
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  static void Handle(void* tag, bool ok);

  // False while connecting, writing or ending.
  bool CanWrite() const { return connected_ && !writing_ && !ending_; }
  // Only where CanWrite().
  void Write(const v1::AgentMessage& message);
  void Cancel() { context_.TryCancel(); }

 private:
  void OnStart(bool ok);
  void OnRead(bool ok);
  void OnWrite(bool ok);
  void OnFinish(bool ok);
  void Finish();

  StreamOwner* const owner_;
  Step start_{this, &Stream::OnStart};
  Step read_{this, &Stream::OnRead};
  Step write_{this, &Stream::OnWrite};
  Step finish_{this, &Stream::OnFinish};
  bool connected_ = false;
  bool writing_ = false;
  bool ending_ = false;
  grpc::Status status_;
  v1::DaemonMessage in_;
  grpc::ClientContext context_;
  const std::unique_ptr<v1::AgentLink::Stub> stub_;
  const std::unique_ptr<grpc::ClientAsyncReaderWriter<v1::AgentMessage, v1::DaemonMessage>> rpc_;
};

}  // namespace rollcall::fleet
