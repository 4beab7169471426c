// SPDX-License-Identifier: Apache-2.0
// Diagnoses a job: runs every rule and orders the verdicts.
//
// Pure: no clock, lock, log or I/O. The same state gives the same answer.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/btree_map.h"
#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"
#include "daemon/rules/stuck_call.h"

namespace rollcall {

// Returns the verdicts on a job, with summary and advice. Empty if nothing is wrong, or no rank has
// waited for long enough. Otherwise the first verdict is the root cause. A verdict that another one
// explains (is_consequence) follows later; warnings come last.
std::vector<Verdict> Diagnose(const JobState& job, int64_t now_ns, const Limits& limits);

// Repeats Diagnose() for one job at low cost: examines only communicators that have changed since
// the previous call.
class Diagnoser {
 public:
  // `job` must be the same job each time, with versions that rise with its
  // changes (JobModel's do).
  std::vector<Verdict> Run(const JobState& job, int64_t now_ns, const Limits& limits);

  // The time from which on Run() may give another result than the previous Run(), as long as
  // neither the job nor the limits change. kNever: a healthy job in which no rank waits. Not later
  // than the time of the previous Run() if that run returned verdicts: their waits get longer. 0 if
  // there was no run.
  int64_t NextDueNs() const { return next_due_ns_; }
  static constexpr int64_t kNever = INT64_MAX;

 private:
  // The result for one communicator with sends and receives.
  struct Messages {
    // As of `version`: when the first wait in a send or receive began; 0 if no rank waits in one.
    uint64_t version = 0;
    int64_t waits_since_ns = 0;
    int64_t no_wait_before_ns = 0;  // no such wait began before this
    bool sizes_compared = false;    // `sizes_differ` is up to date
    bool sizes_differ = false;
  };

  // The result for one communicator at this version.
  struct Finding {
    uint64_t version = 0;
    // No wait on the communicator began before this.
    int64_t no_wait_before_ns = 0;
    uint64_t waits_version = 0;  // `waits_since_ns` is of this version; 0 if unknown
    int64_t waits_since_ns = 0;  // when the first wait began; 0 if no rank waits
    std::vector<Verdict> mismatches;
    std::unique_ptr<Messages> messages;  // nullptr if it has none, as most have
    bool has_calls = false;              // `calls` is up to date
    bool is_forming = false;             // a rank waits in the creation
    std::vector<StuckCall> calls;
  };

  // The result of one pass over all communicators.
  struct Overview {
    bool has_long_wait = false;          // some rank may have waited for long enough
    int64_t next_long_wait_ns = kNever;  // when a wait is long enough, if none is yet
    std::vector<const Communicator*> straggling;
  };

  Overview ExamineCommunicators(const JobState& job, int64_t now_ns, const Limits& limits,
                                RankFinder* finder);
  void ExamineCommunicator(const JobState& job, const Communicator& comm, Finding* finding);
  void FindMismatches(const JobState& job, const Communicator& comm, Finding* finding);
  static void ExamineProcesses(const JobState& job, int64_t now_ns, const Limits& limits,
                               Overview* overview);
  static int64_t NextLongWait(const Communicator& comm, const Finding& finding,
                              const Limits& limits);
  static bool WaitsSinceBefore(const Communicator& comm, int64_t now_ns, int64_t before,
                               Finding* finding);
  static void CompareSizes(const JobState& job, const Communicator& comm, int64_t now_ns,
                           RankFinder* finder, Finding* finding, Overview* overview);
  StuckCalls Collect(const JobState& job, RankFinder* finder);
  std::vector<const Verdict*> FirstMismatches();

  int64_t next_due_ns_ = 0;
  bool may_mismatch_ = false;                    // a finding may have mismatches
  absl::btree_map<uint64_t, Finding> findings_;  // by communicator, as of the previous Run()
};

}  // namespace rollcall
