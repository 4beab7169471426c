// SPDX-License-Identifier: Apache-2.0
// Reads the incident of a report on disk. The file may be damaged or another user's: limits, and no
// trust in its content. Fields of a later release are left out.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

// `path`: the folder of a report, or an incident.json of any name. Follows no link to the file.
// Errors are sentences that name the file, and what to do where that is possible.
absl::StatusOr<v1::Incident> ReadReport(const std::string& path);

// Whether a word that may be the id of an incident names a report on disk: it begins with "/", "./"
// or
// "../", or is the path of a folder with an incident.json, or of a file whose name ends in ".json".
bool IsReportPath(const std::string& word);

}  // namespace rollcall
