// SPDX-License-Identifier: Apache-2.0
// What the agents of a job's hosts tell of a timeline, tick by tick, and what
// comes of it: the real JobModel, Diagnoser and IncidentLife on simulated time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/diagnosis/incidents.h"
#include "daemon/model/job_model.h"
#include "job_plan.h"
#include "timeline.h"

namespace rollcall::corpus {

// How well the job can be seen.
struct Sight {
  uint64_t seed = 1;
  bool markers = true;
  int64_t most_skew_ns = 0;      // of a host's clock, either way
  int64_t most_delay_ns = 0;     // of a tick on its way
  int lost_records_percent = 0;  // members whose early records are overwritten unread
  int late_hosts_percent = 0;    // hosts whose agent comes seconds late
  int resent_percent = 0;        // ticks that come twice
  int reconnects_percent = 0;    // ticks in which an agent tells everything anew
  int64_t tick_ns = 500'000'000;
  // Metamorphic tests change these, and expect the same answer.
  bool shuffle_hosts = false;
  std::vector<int> renumber;     // rank -> the rank that the environment gives; empty: its own
  int healthy_neighbours = 0;    // communicators added that only ever go well
  std::vector<int> blind_hosts;  // hosts without an agent
};

struct Outcome {
  bool confirmed = false;
  int suspected = 0;              // incidents opened
  int64_t confirmed_ns = 0;       // simulated
  std::vector<Verdict> at_first;  // of the first confirmed incident, as it was confirmed
  std::vector<Verdict> verdicts;  // the same, when some seconds more had shown the rest
  std::vector<Verdict> warnings;  // the last ones
};

Limits CorpusLimits();

// The id under which a communicator of the plan is told.
uint64_t IdOf(int comm);

Outcome Watch(const JobPlan& plan, const Timeline& timeline, const Sight& sight);

}  // namespace rollcall::corpus
