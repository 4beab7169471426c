// SPDX-License-Identifier: Apache-2.0
// A table of the position of every rank on every communicator, for `rollcall analyze`.
#pragma once

#include <string>

#include "daemon/model/job_state.h"

namespace rollcall {

// Ranks with equal entries share a line. Communicators with waiting ranks come first. After
// kMostCommunicators, the table only counts the rest. Lines fit kTextColumns.
std::string StateTable(const JobState& job);

}  // namespace rollcall
