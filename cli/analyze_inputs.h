// SPDX-License-Identifier: Apache-2.0
// Sorts what a person gives to `rollcall analyze` by its kind.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace rollcall {

struct AnalyzeInputs {
  std::set<std::string> folders;   // that hold segments
  std::vector<std::string> dumps;  // files that may be dumps of the Flight Recorder, and folders
  std::vector<std::string> ras;    // files with output of NCCL's RAS
  std::vector<std::string> logs;   // other text
};

// Adds every folder at or below `path` that holds segments. A user who copied folders from many
// hosts can therefore give their common parent. A segment's path adds its whole folder, because
// one rank alone shows little.
absl::Status AddSegmentFolders(const std::string& path, std::set<std::string>* folders);

// Sorts files by their names and first bytes. Below folders it finds logs by their extension only
// (.log, .out, .err, .txt), and does not follow links.
absl::Status SortInputs(const std::vector<std::string>& paths, AnalyzeInputs* inputs);

}  // namespace rollcall
