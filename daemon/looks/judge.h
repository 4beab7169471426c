// SPDX-License-Identifier: Apache-2.0
// Judges jobs by looks at their hosts: groups the processes into jobs, and applies the daemon's
// rules to each. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/looks/group.h"
#include "rollcall/v1/look.pb.h"

namespace rollcall {

// The end of a file into which ranks of one host write their output.
struct LogOfRanks {
  std::vector<int32_t> ranks;
  bool of_culprit = false;
  std::string host;
  v1::LogEnd log;
};

// What the looks show of one job.
struct LookedAtJob {
  LookGroup group;  // its processes, in the looks
  enum class Outcome : uint8_t {
    kGoesOn,      // it moves, is idle, or is not a job that could hang: nothing is reported
    kHangs,       // `incident` has verdicts
    kCannotTell,  // `why` has the reason; what `incident` has of verdicts is only possible
  };
  Outcome outcome = Outcome::kGoesOn;
  v1::Incident incident;   // of any outcome; without verdicts if it goes on. Has the newest stacks
  std::string why;         // one sentence
  size_t ranks = 0;        // seen
  int32_t world_size = 0;  // as the job reports; 0 if it does not
  std::vector<std::string> hosts;
  bool is_recorded = false;  // some of its processes run Rollcall's library
  // All ranks wait at one line of a library that asks again and again: counts of calls can show it.
  bool needs_counts = false;
  std::vector<std::string> unseen;  // for people, of this job
  std::vector<LogOfRanks> logs;     // into which its ranks write; those of culprits first
};

// `looks`: of all hosts; one with an `error` counts as an unseen host. Never
// `certain`: two samples show where the ranks stand, and not what they have agreed on.
std::vector<LookedAtJob> JudgeLooks(const std::vector<v1::HostLook>& looks);

// By the root cause of its incident, if it has one: whether the job hangs. One that is only
// possible is suspected. Anew whenever the certainty has changed.
void Conclude(int64_t now_ns, LookedAtJob* job);

// When all is known: what was not seen of a job that may hang is missing evidence of its root
// cause, and its report keeps it.
void KeepUnseen(LookedAtJob* job);

}  // namespace rollcall
