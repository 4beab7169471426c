// SPDX-License-Identifier: Apache-2.0
// Simulates the agents of a job's hosts, which report a timeline tick by tick, and runs the
// real JobModel, Diagnoser and IncidentLife on their reports, in simulated time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/diagnosis/life/incident_life.h"
#include "daemon/model/job_model.h"
#include "job_plan.h"
#include "timeline.h"

namespace rollcall::corpus {

// How much of the job the agents can see.
struct Sight {
  uint64_t seed = 1;
  bool markers = true;
  bool sees_exit_status = true;  // false: a death shows as an end with unknown exit status
  int64_t most_skew_ns = 0;      // of a host's clock, in either direction
  int64_t most_delay_ns = 0;     // of a tick in the network
  int lost_records_percent = 0;  // members of which the ring overwrites early records unread
  int late_hosts_percent = 0;    // hosts whose agent starts seconds late
  int resent_percent = 0;        // ticks that arrive twice
  int reconnects_percent = 0;    // ticks in which an agent reports everything again
  int64_t tick_ns = 500'000'000;
  // Ranks that one process holds, each with a thread of its own; a host's ranks are a multiple.
  int ranks_per_process = 1;
  bool numbers_processes = true;  // then: the environment has the number of the process
  // Metamorphic tests change these and expect the same answer.
  bool shuffle_hosts = false;
  std::vector<int> renumber;     // rank -> the rank that the environment gives; empty means its own
  int healthy_neighbours = 0;    // number of additional communicators, all healthy
  std::vector<int> blind_hosts;  // hosts without an agent
};

struct Outcome {
  bool confirmed = false;
  int suspected = 0;              // number of opened incidents
  int64_t confirmed_ns = 0;       // simulated time
  std::vector<Verdict> at_first;  // of the first confirmed incident, at its confirmation
  std::vector<Verdict> verdicts;  // of the same incident, some seconds later
  std::vector<Verdict> warnings;  // the newest ones
};

Limits CorpusLimits();

// The id with which agents report a communicator of the plan.
uint64_t CommId(int comm);
constexpr int kFirstPid = 4000;

Outcome Watch(const JobPlan& plan, const Timeline& timeline, const Sight& sight);

}  // namespace rollcall::corpus
