// SPDX-License-Identifier: Apache-2.0
// The agent of one simulated host: connects, says hello, sends ticks and answers, and comes back
// after a pause when its stream ends.
//
// Belongs to one Worker and runs on its thread.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "tests/fleet/fleet_plan.h"
#include "tests/fleet/host_report.h"
#include "tests/fleet/ramp.h"
#include "tests/fleet/random.h"
#include "tests/fleet/stream.h"
#include "tests/fleet/tally.h"
#include "tests/fleet/timers.h"

namespace rollcall::fleet {

class Host : public StreamOwner {
 public:
  // What its worker lends it.
  struct Tools {
    grpc::CompletionQueue* queue;
    Timers* timers;
    Ramp* ramp;
    Tally* tally;
    std::shared_ptr<grpc::ChannelCredentials> credentials;
  };

  Host(const FleetPlan* plan, int index, const Tools& tools);

  // For the timer that was set for `due_ns`; an older one does nothing.
  void OnTimer(int64_t due_ns, int64_t now_ns);
  // Cuts its stream and comes back.
  void Cut();
  // Cuts its stream and does not come back.
  void Stop();
  bool has_stream() const { return stream_ != nullptr; }

  void OnConnected() override;
  void OnMessage(const v1::DaemonMessage& message) override;
  void OnWritten() override;
  void OnClosed(const grpc::Status& status) override;

 private:
  // What the host has written on its stream.
  enum class Phase { kNothing, kHello, kWholeTick, kTicks };

  void WakeAt(int64_t at_ns);
  void WakeForNextTick(int64_t now_ns);
  void Connect();
  void LeaveRamp();
  void SendTick(int64_t now_ns, bool whole);
  void WriteTick(const v1::AgentMessage& message);
  void QueueStacks(const v1::TakeStacks& request);
  void ObeyOwners(const v1::Owners& owners);
  void CheckBack();
  int64_t NextPause();

  const FleetPlan* const plan_;
  size_t daemon_index_;  // of the daemons it knows, while it has no owner of its job
  std::string daemon_;
  const Tools tools_;
  const bool is_late_;
  Random random_;
  HostReport report_;
  std::unique_ptr<Stream> stream_;
  Phase phase_ = Phase::kNothing;
  int64_t tick_ns_;
  int64_t wake_ns_ = 0;
  int64_t due_ns_ = 0;                          // the tick that is due next, or is due and not sent
  bool whole_asked_ = false;                    // the next tick is a whole one
  bool tick_owed_ = false;                      // it is due, and the stream cannot take it yet
  std::optional<v1::AgentMessage> travelling_;  // a tick that was made and arrives late
  std::deque<v1::AgentMessage> answers_;
  bool is_on_ramp_ = false;  // connecting, as one of those that may
  bool welcomed_ = false;
  bool is_back_ = false;  // welcomed, and the whole tick was taken
  bool cut_itself_ = false;
  bool stopping_ = false;
  int64_t lost_ns_ = 0;  // since when it has had no stream; 0 if it never had one
  int attempts_ = 0;     // in vain, since the last stream
};

}  // namespace rollcall::fleet
