// SPDX-License-Identifier: Apache-2.0
// What is wrong with a job: runs every rule and orders what they find.
//
// Pure: no clock, lock, log or I/O. The same state gives the same answer.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/btree_map.h"
#include "daemon/diagnosis/rules/stuck_call.h"
#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

// Empty: nothing is wrong, or nothing has waited for long enough. Otherwise the
// first verdict is the root cause, and a verdict that another one explains
// (is_consequence) stands after it; warnings come last. Summary and advice are
// filled in.
std::vector<Verdict> Diagnose(const JobState& job, int64_t now_ns, const Limits& limits);

// Repeats Diagnose() for one job at low cost: examines only communicators that have changed since
// the previous call.
class Diagnoser {
 public:
  // `job` must be the same job each time, with versions that rise with its
  // changes (JobModel's do).
  std::vector<Verdict> Run(const JobState& job, int64_t now_ns, const Limits& limits);

 private:
  // What was found on a communicator when it had this version.
  struct Finding {
    uint64_t version = 0;
    // No wait on it is older than this: what waits now, or did when it was
    // examined last, and what has begun since.
    int64_t no_wait_before_ns = 0;
    bool has_calls = false;   // `calls` was filled in
    bool is_forming = false;  // somebody waits in its creation
    std::vector<StuckCall> calls;
    std::vector<Verdict> mismatches;
  };

  // What one look at all communicators showed.
  struct Glance {
    bool anybody_long = false;
    std::vector<const Communicator*> straggling;
  };

  Glance Look(const JobState& job, int64_t now_ns, const Limits& limits);
  static void LookAt(const JobState& job, const Communicator& comm, Finding* finding);
  static bool WaitsSinceBefore(const Communicator& comm, int64_t now_ns, int64_t before,
                               Finding* finding);
  StuckCalls Collect(const JobState& job);

  absl::btree_map<uint64_t, Finding> findings_;  // by communicator: those of the last job that was looked at
};

}  // namespace rollcall
