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
};

// The limit of notes for people.
void AddNote(const std::string& note, std::vector<std::string>* notes);

// One of each rank, by rank. `paths`: files, and folders that are searched, links
// not followed. What is wrong with single files goes to `notes`; an error only for
// a path that is not there.
absl::StatusOr<std::vector<RankedDump>> ReadDumps(const std::vector<std::string>& paths,
                                                  std::vector<std::string>* notes);

}  // namespace rollcall
