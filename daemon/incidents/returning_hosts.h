// SPDX-License-Identifier: Apache-2.0
// What a restarted daemon cannot see yet of the jobs of an earlier one.
//
// While a job's hosts have not all reported again, for kReturnWithinNs at most, nothing of the job
// is opened, confirmed or closed. Afterwards nothing is certain until the missing hosts have
// reported. Pure: time is an argument. One owner, no lock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/incidents/incident_record.h"
#include "daemon/model/job_state.h"

namespace rollcall {

// How long a restarted daemon waits for a job's hosts, and for a job with an open incident.
inline constexpr int64_t kReturnWithinNs = 30'000'000'000;
inline constexpr int64_t kJobReturnsWithinNs = 600'000'000'000;
inline constexpr int64_t kBeganNow = INT64_MAX;

class ReturningHosts {
 public:
  // The daemon begins. `has_history`: it has the hosts of an earlier daemon's jobs, and is not
  // readable yet.
  void Begin(int64_t now_ns, bool has_history);
  void SetKnown() { is_known_ = true; }  // the history is readable
  bool is_known() const { return is_known_; }
  int64_t started_ns() const { return started_ns_; }

  bool Awaits(const JobIncidents& job, int64_t now_ns) const;
  // Returns what a diagnosis cannot see of its job, in words; empty if it sees all. `began_ns`:
  // when the job began.
  std::string WhatIsNotSeen(const JobState& state, const JobIncidents& job, int64_t began_ns) const;

 private:
  int64_t started_ns_ = 0;
  bool has_history_ = false;
  bool is_known_ = true;
};

// No verdict that lacks a host is certain. `line` becomes part of the missing evidence, once.
void Weaken(const std::string& line, std::vector<Verdict>* verdicts);
void Weaken(const std::string& line, v1::Incident* incident);

}  // namespace rollcall
