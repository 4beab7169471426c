// SPDX-License-Identifier: Apache-2.0
// Finds and reads the dumps of a job: one file for each rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/flight_recorder/dump.h"

namespace rollcall {

struct RankedDump {
  std::string path;
  int32_t rank = -1;  // the number that the file's name ends with
  Dump dump;
  std::string host;  // as far as the dump, or names of files and folders, show it; empty if unknown
};

struct DumpFiles {
  std::vector<RankedDump> dumps;  // one for each rank, in the order of the ranks
  int damaged = 0;                // files that begin like a dump and do not end like one
};

// Appends `warning`, unless `warnings` has reached its limit.
void AddWarning(const std::string& warning, std::vector<std::string>* warnings);

// Reads one dump for each rank. `paths` names files and folders. The
// search of a folder does not follow links. Problems with single files go to `warnings`. Only a
// path that does not exist is an error.
absl::StatusOr<DumpFiles> ReadDumps(const std::vector<std::string>& paths,
                                    std::vector<std::string>* warnings);

}  // namespace rollcall
