// SPDX-License-Identifier: Apache-2.0
// Flight Recorder dumps of a whole job, for the same rules that judge segments.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/model/job_model.h"
#include "daemon/model/verdict.h"

namespace rollcall {

struct FlightRecorderInput {
  JobModel model{"flight-recorder"};
  std::vector<std::string> notes;  // one line each, with file and place
  int files = 0;                   // that were read
  int64_t newest_ns = 0;           // the last thing that any of them tells
  bool has_start_times = false;    // TORCH_NCCL_ENABLE_TIMING=1
  // Process, communicator, position: the code line that made the call.
  std::map<std::tuple<int32_t, uint64_t, uint64_t>, std::string> where;
};

// `paths`: files, and folders that are searched for them. A file's rank is the
// number that its name ends with. An error only if no dump could be read; what
// is wrong with single files is among the notes.
absl::StatusOr<FlightRecorderInput> ImportFlightRecorder(const std::vector<std::string>& paths);

// Adds what only dumps know (code lines), and lowers what they cannot show.
void AddWhatDumpsTell(const FlightRecorderInput& input, std::vector<Verdict>* verdicts);

}  // namespace rollcall
