// SPDX-License-Identifier: Apache-2.0
// Writes reports: a folder `<report-dir>/<time>-<job>[.<attempt>]-<cause>/`, with the UTC
// time at which the incident was opened. It has incident.json, report.txt, report.html and
// stacks.txt.
//
// A reader never sees half a report: the folder appears complete under its name, and the writer
// replaces changed files atomically. Neither waits for the disk, which may take seconds: call
// SyncReport() (report_files.h) afterwards. Until that returns, a power failure can take the files'
// contents. Errors are those of report_files.h. Only owner and group can read a folder. Any thread
// may call these functions, but not two threads for one folder.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

// What incident.json contains of its own place.
enum class ReportPlace {
  kPath,        // the absolute path of the folder
  kFolderName,  // for a report that goes elsewhere: paths may contain the names of users
};

// Creates `report_dir` if it is missing, and checks that a report can be written. Call it before
// the job starts.
absl::Status CheckReportDir(const std::string& report_dir);

// Writes a new report and returns the absolute path of its folder; incident.json has the path as
// report_path. If the name is taken, appends "-2", "-3", ...
absl::StatusOr<std::string> CreateReport(const std::string& report_dir, v1::Incident incident,
                                         ReportPlace place = ReportPlace::kPath);

// The folder of the report that CreateReport() wrote for this incident earlier; "" if there is
// none. The id and the time of opening identify the incident.
std::string FindReport(const std::string& report_dir, const v1::Incident& incident);

// Rewrites the files in `folder`, which CreateReport() returned.
absl::Status UpdateReport(const std::string& folder, v1::Incident incident);

}  // namespace rollcall
