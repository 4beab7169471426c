// Writes reports: a folder `<report-dir>/<UTC time>-<cause>/` with incident.json,
// report.txt, report.html and stacks.txt.
//
// A reader never sees half a report: the folder appears whole under its name,
// and files that change are replaced at once. Errors name the path, why, and
// what to try: kResourceExhausted is a full disk or quota, kUnavailable means that no file descriptor
// is left, kNotFound that a folder is gone. A folder is open to its owner and its group only. May be called from any thread, but not from two for one folder.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

// Makes `report_dir` if it is not there, and finds out whether a report could be
// written. To be asked before the job starts.
absl::Status CheckReportDir(const std::string& report_dir);

// Writes a new report and returns its folder, absolute; incident.json has it as
// report_path. A name that is taken gets "-2", "-3", ... at its end.
absl::StatusOr<std::string> CreateReport(const std::string& report_dir, v1::Incident incident);

// Writes the files in `folder`, which CreateReport() returned, anew.
absl::Status UpdateReport(const std::string& folder, v1::Incident incident);

}  // namespace rollcall
