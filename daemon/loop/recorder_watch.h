// SPDX-License-Identifier: Apache-2.0
// When the Flight Recorders of a job that stands still are asked, and what their answer decides:
// once for each job, after the stacks have shown that no rank moves.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/loop/recorder_source.h"

namespace rollcall {

class RecorderWatch {
 public:
  // `source`: outlives this object; nullptr if they cannot be asked.
  explicit RecorderWatch(RecorderSource* source) : source_(source) {}

  // Completes the verdicts of a diagnosis. A call that is recorded and hangs is more telling than a
  // recorder, and stays. A standstill is not confirmed while answers are awaited.
  void Complete(const JobState& job, int64_t now_ns, const Limits& limits,
                std::vector<Verdict>* verdicts);

  // The next diagnosis may find an answer although the job has not changed.
  bool IsWaiting() const { return asked_ns_ != 0 && !answer_.has_value(); }

 private:
  RecorderSource* source_;
  int64_t asked_ns_ = 0;     // 0 if not yet, or the job has moved since
  bool was_asked_ = false;   // for good
  int64_t asked_of_ns_ = 0;  // since when the ranks stood that were asked
  std::optional<RecorderAnswer> answer_;
};

}  // namespace rollcall
