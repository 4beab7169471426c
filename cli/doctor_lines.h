// SPDX-License-Identifier: Apache-2.0
// Formats what `rollcall doctor` has found. Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/doctor/checks.h"
#include "cli/status_lines.h"

namespace rollcall {

// Returns the outcome in one sentence; then problems, warnings and what works, in the order of the
// checks; then what does not apply.
std::vector<StatusLine> DoctorLines(const std::vector<doctor::Finding>& findings);

// {"version", "host", "problems", "warnings", "checks": [{"id", "state", "what", "type_next"}]}.
std::string DoctorJson(const std::vector<doctor::Finding>& findings, const std::string& version,
                       const std::string& host);

}  // namespace rollcall
