// SPDX-License-Identifier: Apache-2.0
// What the daemon does by the clock, whatever agents and people do: it looks for silent agents,
// sets the pace of all, reads changed files again, ends the streams of revoked agents, and makes
// known what has changed.
//
// Owns the thread that does this, the one that keeps the states of the last hour, and with a
// database one that takes over the silences of other daemons. One thread starts and stops it;
// IsAlive() may be called by any.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "base/steady_clock.h"
#include "base/stop_signal.h"
#include "daemon/jobs/own_lateness.h"

namespace rollcall {

class AgentHub;
class AgentService;
class DaemonSecurity;
class IncidentBook;
class JobRunners;
class JobStore;
class PastViewsKeeper;
class Timeline;

class DaemonClock {
 public:
  // All outlive this object.
  struct Parts {
    AgentHub* hub;
    AgentService* agents;
    JobRunners* runners;
    JobStore* store;
    IncidentBook* incidents;
    Timeline* timeline;
    PastViewsKeeper* past;
    DaemonSecurity* security;  // nullptr if there is none
  };
  struct Times {
    int64_t tick_ns, silent_after_ns, check_callers_every_ns;  // as in DaemonOptions
  };

  DaemonClock(const Parts& parts, const Times& times)
      : parts_(parts), times_(times), lateness_(times.silent_after_ns) {}

  void Start(bool has_database);
  // The threads end soon. Join() waits for them: by then the runners have made their last
  // diagnosis.
  void BeginStop() { stop_.Stop(); }
  void Join();

  // Whether the thread and the workers have done something of late.
  bool IsAlive() const;

 private:
  void Run();
  void Tick();
  void Pulse(int64_t now_ns);
  void Publish();
  void KeepSilences();

  const Parts parts_;
  const Times times_;
  StopSignal stop_;
  // Only the first thread uses these, except the atomic one.
  OwnLateness lateness_;
  int64_t pulsed_ns_ = 0, callers_checked_ns_ = 0;
  std::atomic<int64_t> ran_ns_{SteadyNs()};  // when the thread did something last
  std::thread thread_;
  std::thread past_thread_;      // of the keeper
  std::thread silences_thread_;  // takes over the silences of other daemons
};

}  // namespace rollcall
