// SPDX-License-Identifier: Apache-2.0
// Imports the Flight Recorder dumps of a whole job into a JobModel, for the rules that judge
// segments.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/flight_recorder/dump_files.h"
#include "daemon/model/job_model.h"
#include "daemon/model/verdict.h"

namespace rollcall {

struct FlightRecorderInput {
  JobModel model{"flight-recorder"};
  std::vector<std::string> warnings;  // one line each, with file and place
  int files = 0;                      // the number of dumps read
  int damaged = 0;                    // the number of dumps that are cut off or damaged
  int64_t newest_ns = 0;              // the newest time in any dump
  bool has_start_times = false;       // TORCH_NCCL_ENABLE_TIMING=1
  // The code line that made a call, by process, communicator and position.
  std::map<std::tuple<int32_t, uint64_t, uint64_t>, std::string> where;
  // All-to-alls whose sums do not match, by communicator and position.
  std::map<std::pair<uint64_t, uint64_t>, std::string> exchanges;
  // Gathers and scatters of different numbers, of which no dump has the root's list: by
  // communicator and position.
  std::set<std::pair<uint64_t, uint64_t>> unlisted;
};

// `paths` names files and folders to search. The number at the end of a file's name is the file's
// rank. An error means that no dump could be read. Problems with single files are among the
// warnings.
absl::StatusOr<FlightRecorderInput> ImportFlightRecorder(const std::vector<std::string>& paths);

// The same for dumps that have been read, with the warnings of reading them. `dumps` has at least
// one, and one for each rank.
FlightRecorderInput ImportDumps(std::vector<RankedDump> dumps, std::vector<std::string> warnings);

// Adds the code lines from the dumps to the evidence, and lowers the certainty of verdicts that
// dumps without start times cannot show.
void AddDumpEvidence(const FlightRecorderInput& input, std::vector<Verdict>* verdicts);

}  // namespace rollcall
