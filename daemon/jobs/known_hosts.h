// SPDX-License-Identifier: Apache-2.0
// The hosts of one job, and those that a restarted daemon still waits for.
//
// Plain values, no lock.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "daemon/model/job_state.h"

namespace rollcall {

// The ranks that the job has, and those of them that no agent has reported.
struct RankCount {
  size_t all = 0, unreported = 0;
};
// Counts by the world size of the processes, else by the largest gap in a communicator.
RankCount CountRanks(const JobState& state);

class KnownHosts {
 public:
  // The hosts that an earlier daemon recorded. Those that have come already are not missing.
  void Restore(const std::set<std::string>& hosts);

  // Looks which hosts report on the job. Returns the hosts to record now: new ones; all of them
  // after kRecordEveryNs, so that the record stays young.
  std::vector<std::string> Update(const JobState& state, int64_t now_ns);

  // Recorded hosts that have not reported since the restart.
  const std::set<std::string>& missing() const { return missing_; }

  // All hosts are to be recorded again.
  void SetUnrecorded() { recorded_.clear(); }

 private:
  static constexpr int64_t kRecordEveryNs = 3600'000'000'000;

  std::set<std::string> missing_;
  std::set<std::string> recorded_;
  size_t agents_ = 0;        // in the state at the last look
  int64_t recorded_ns_ = 0;  // when all were recorded
};

}  // namespace rollcall
