// SPDX-License-Identifier: Apache-2.0
#include "agent/link/daemon_stream.h"

#include <unistd.h>

#include <optional>
#include <utility>

#include "base/threads.h"

namespace rollcall {

DaemonStream::DaemonStream(const Receivers& to, v1::AgentLink::Stub* stub,
                           std::shared_ptr<grpc::ClientContext> context)
    : to_(to),
      number_(to.inbox->stream()),
      context_(std::move(context)),
      stream_(stub->Connect(context_.get())) {
  std::optional<std::thread> reader = TryThread([this] { Read(); });
  if (reader.has_value()) {
    reader_ = *std::move(reader);
    return;
  }
  context_->TryCancel();
  static_cast<void>(stream_->Finish());
  status_ = {grpc::StatusCode::RESOURCE_EXHAUSTED, "the system gives the agent no thread"};
  broken_ = true;
}

DaemonStream::~DaemonStream() {
  context_->TryCancel();
  to_.inbox->EndStream();  // before the join: the reader may wait in Put()
  static_cast<void>(Finish());
}

const grpc::Status& DaemonStream::Finish() {
  if (!reader_.joinable()) return status_;
  reader_.join();
  status_ = stream_->Finish();
  return status_;
}

void DaemonStream::Close() {
  if (!broken_) stream_->WritesDone();
  for (int i = 0; i < 100 && !broken_; ++i) usleep(5000);
}

void DaemonStream::Read() {
  v1::DaemonMessage message;
  while (stream_->Read(&message)) TakeIn(message);
  broken_ = true;
  to_.inbox->Wake();
}

void DaemonStream::TakeIn(const v1::DaemonMessage& message) {
  if (message.has_welcome()) SetWelcomed(message.welcome());
  if (message.has_pace()) wanted_tick_ns_ = message.pace().tick_ns();
  if (message.has_owners()) FollowOwners(message.owners());
  if (message.has_host_hangs()) to_.host_hangs->TakeIn(message.host_hangs());
  if (message.has_take_stacks()) to_.stacks->TakeIn(number_, message.take_stacks());
  if (message.has_gather_host_facts()) {
    to_.host_facts->TakeIn(number_, message.gather_host_facts());
  }
  if (message.has_look_at_ranks()) to_.host_facts->TakeIn(number_, message.look_at_ranks());
}

void DaemonStream::SetWelcomed(const v1::Welcome& welcome) {
  must_connect_anew_ = to_.watcher != nullptr && !to_.watcher->Welcomed(welcome);
  whole_records_ = welcome.whole_records();
  reads_short_columns_ = welcome.reads_short_columns();
  welcomed_ = true;
  to_.inbox->Wake();
}

void DaemonStream::FollowOwners(const v1::Owners& owners) {
  if (to_.watcher == nullptr) return;
  to_.watcher->Told(owners);
  if (!owners.send_whole()) return;
  wants_whole_ = true;
  to_.inbox->TickSoon();
}

}  // namespace rollcall
