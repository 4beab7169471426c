// SPDX-License-Identifier: Apache-2.0
// The Flight Recorders of PyTorch in a job's ranks, for a program that can ask them: `rollcall
// run`, on the host of its job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

// What the sequence numbers of the recorders show.
struct RecorderAnswer {
  std::vector<Verdict> verdicts;  // with the processes of the job; empty if they show no hang
  std::string note;               // one line: what was asked, or why it decides nothing, or empty
};

// The worker that runs the job calls it.
class RecorderSource {
 public:
  virtual ~RecorderSource() = default;

  // Asks the recorders of these processes, by index. Returns at once. False if none can be asked.
  virtual bool Ask(const JobState& job, const std::vector<int32_t>& processes) = 0;

  // nullopt if answers are still awaited, for a few seconds at most.
  virtual std::optional<RecorderAnswer> Answer(const JobState& job) = 0;
};

}  // namespace rollcall
