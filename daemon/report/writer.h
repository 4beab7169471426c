// SPDX-License-Identifier: Apache-2.0
// Writes reports: a folder `<report-dir>/<UTC time>-<cause>/` with incident.json,
// report.txt, report.html and stacks.txt.
//
// A reader never sees half a report: the folder appears complete under its name, and the writer
// replaces changed files atomically. Errors name the path, the reason and the remedy:
// kResourceExhausted is a full disk or quota, kUnavailable means that no file descriptor is left,
// kNotFound that a folder is gone. Only owner and group can read a folder. Any thread may call
// these functions, but not two threads for one folder.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

// Creates `report_dir` if it is missing, and checks that a report can be written. Call it before
// the job starts.
absl::Status CheckReportDir(const std::string& report_dir);

// Writes a new report and returns its folder, absolute; incident.json has it as
// report_path. A name that is taken gets "-2", "-3", ... at its end.
absl::StatusOr<std::string> CreateReport(const std::string& report_dir, v1::Incident incident);

// Rewrites the files in `folder`, which CreateReport() returned.
absl::Status UpdateReport(const std::string& folder, v1::Incident incident);

}  // namespace rollcall
