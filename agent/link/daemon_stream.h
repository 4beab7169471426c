// SPDX-License-Identifier: Apache-2.0
// One stream of an agent to its daemon. A thread of its own reads it and passes on what the daemon
// asks; only the uplink thread writes it.
//
// Every call may block until the daemon answers or the context is cancelled.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include "agent/link/host_facts_answers.h"
#include "agent/link/host_hangs_relay.h"
#include "agent/link/stack_answers.h"
#include "agent/link/stream_watcher.h"
#include "agent/link/uplink_inbox.h"
#include "rollcall/v1/agent.grpc.pb.h"

namespace rollcall {

class DaemonStream {
 public:
  // The receiver of the daemon's messages. All outlive the stream.
  struct Receivers {
    UplinkInbox* inbox;
    StackAnswers* stacks;
    HostFactsAnswers* host_facts;
    HostHangsRelay* host_hangs;
    StreamWatcher* watcher;  // nullptr if there is none
  };

  DaemonStream(const Receivers& to, v1::AgentLink::Stub* stub,
               std::shared_ptr<grpc::ClientContext> context);
  ~DaemonStream();
  DaemonStream(const DaemonStream&) = delete;
  DaemonStream& operator=(const DaemonStream&) = delete;

  bool Send(const v1::AgentMessage& message) { return !broken_ && stream_->Write(message); }
  // Half-closes the stream, then waits up to half a second for the daemon to end it, so that the
  // daemon receives every message written before.
  void Close();
  // How the stream has ended. Waits for that.
  const grpc::Status& Finish();

  const grpc::ClientContext& context() const { return *context_; }
  bool broken() const { return broken_; }
  bool welcomed() const { return welcomed_; }
  bool must_connect_anew() const { return must_connect_anew_; }
  // The records that a whole tick needs of each communicator; 0 means all.
  uint32_t whole_records() const { return whole_records_; }
  bool reads_short_columns() const { return reads_short_columns_; }
  int64_t wanted_tick_ns() const { return wanted_tick_ns_; }  // 0 if the daemon has not set it
  // Whether the daemon has asked for a whole tick since the last call.
  bool TakeWishForWhole() { return wants_whole_.exchange(false); }

 private:
  void Read();
  void TakeIn(const v1::DaemonMessage& message);
  void SetWelcomed(const v1::Welcome& welcome);
  void FollowOwners(const v1::Owners& owners);

  const Receivers to_;
  const uint64_t number_;
  const std::shared_ptr<grpc::ClientContext> context_;
  const std::unique_ptr<grpc::ClientReaderWriter<v1::AgentMessage, v1::DaemonMessage>> stream_;
  std::atomic<bool> broken_{false}, welcomed_{false}, reads_short_columns_{false};
  std::atomic<bool> must_connect_anew_{false}, wants_whole_{false};
  std::atomic<uint32_t> whole_records_{0};
  std::atomic<int64_t> wanted_tick_ns_{0};
  std::thread reader_;
  grpc::Status status_;
};

}  // namespace rollcall
