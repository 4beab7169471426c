// What is wrong with a job: runs every rule and orders what they find.
//
// Pure: no clock, lock, log or I/O. The same state gives the same answer.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"
#include "daemon/rules/stuck_call.h"

namespace rollcall {

// Empty: nothing is wrong, or nothing has waited for long enough. Otherwise the
// first verdict is the root cause, and a verdict that another one explains
// (is_consequence) stands after it; warnings come last. Summary and advice are
// filled in.
std::vector<Verdict> Diagnose(const JobState& job, int64_t now_ns, const Limits& limits);

// Gives the answers of Diagnose() for one job again and again, and looks only
// at communicators that have changed since it was asked last.
class Diagnoser {
 public:
  // `job` must be the same job each time, with versions that rise with its
  // changes (JobModel's do).
  std::vector<Verdict> Run(const JobState& job, int64_t now_ns, const Limits& limits);

 private:
  // What was found on a communicator when it had this version.
  struct Finding {
    uint64_t version = 0;
    uint64_t seen_in = 0;         // run that saw the communicator last
    int64_t waiting_since_ns = 0;  // the oldest wait; 0: none
    bool has_calls = false;        // `calls` was filled in
    std::vector<StuckCall> calls;
    std::vector<Verdict> mismatches;
  };

  void Look(const JobState& job);
  bool IsAnybodyLong(const JobState& job, int64_t now_ns, const Limits& limits) const;
  StuckCalls Collect(const JobState& job);

  uint64_t runs_ = 0;
  std::map<uint64_t, Finding> findings_;  // by communicator
};

}  // namespace rollcall
