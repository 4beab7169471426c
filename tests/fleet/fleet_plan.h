// SPDX-License-Identifier: Apache-2.0
// Which job runs where and when. Pure, and read by all threads.
//
// The fleet is cut into lanes: the hosts that run one job at a time. Without --jobs-cycle a lane
// runs one job for ever. Otherwise its jobs follow each other: its runs.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/fleet/call_history.h"
#include "tests/fleet/job_script.h"
#include "tests/fleet/load_options.h"

namespace rollcall::fleet {

struct Lane {
  int index = 0;  // of its first job among all jobs
  int ranks = 0;
  int hosts = 0;
  Fault fault = Fault::kNone;
  int64_t fault_ns = 0;  // in its first run; as long after the begin of each other one
};

// What a host runs: some ranks of its lane's job.
struct Seat {
  int lane = 0;
  int first_rank = 0;
  int ranks = 0;
};

struct Hang {
  std::string job;
  int culprit = 0;
  int64_t since_ns = 0;  // the first rank waits from then on
};

class FleetPlan {
 public:
  FleetPlan(const LoadOptions& options, int64_t begin_ns);

  const LoadOptions& options() const { return options_; }
  const CallHistory& history() const { return history_; }
  int64_t begin_ns() const { return begin_ns_; }
  int hosts() const { return static_cast<int>(seats_.size()); }
  const Seat& SeatOf(int host) const { return seats_[static_cast<size_t>(host)]; }

  // The run of the lane's jobs that has begun last, from 0; it may have ended.
  int64_t RunAt(int lane, int64_t now_ns) const;
  JobScript ScriptOf(int lane, int64_t run) const;

  std::vector<Hang> Hangs() const;

 private:
  void AddLane(Lane lane);
  int64_t RunsOf(const Lane& lane) const;

  const LoadOptions options_;
  const int64_t begin_ns_;
  const CallHistory history_;
  std::vector<Lane> lanes_;
  std::vector<Seat> seats_;  // by host
};

}  // namespace rollcall::fleet
