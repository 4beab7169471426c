// SPDX-License-Identifier: Apache-2.0
// Runs some of the hosts on one thread: it takes the events of their streams and wakes them when
// they have something to do. Owns the hosts, their completion queue and their timers.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "tests/fleet/fleet_plan.h"
#include "tests/fleet/host.h"
#include "tests/fleet/ramp.h"
#include "tests/fleet/random.h"
#include "tests/fleet/tally.h"
#include "tests/fleet/timers.h"

namespace rollcall::fleet {

class Worker {
 public:
  // Runs each host whose number leaves `index` when divided by `workers`.
  Worker(const FleetPlan* plan, Tally* tally,
         const std::shared_ptr<grpc::ChannelCredentials>& credentials, int index, int workers);
  ~Worker();

  void Start();
  // Closes all streams and waits for the thread.
  void Stop();

 private:
  void Run();
  void RunTimers(int64_t now_ns);
  void CutHosts(int64_t now_ns);
  // Handles one event, or returns after at most `until_ns`.
  void HandleEvent(int64_t until_ns);
  void CloseStreams();

  const int64_t cut_period_ns_;  // between two hosts that cut their stream; 0 if none does
  int64_t next_cut_ns_;
  Random random_;
  grpc::CompletionQueue queue_;
  Timers timers_;
  Ramp ramp_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace rollcall::fleet
