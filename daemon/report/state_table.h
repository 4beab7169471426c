// Where every rank stood on every communicator: the table that people make by
// hand from logs. For `rollcall analyze`.
#pragma once

#include <string>

#include "daemon/model/job_state.h"

namespace rollcall {

// Ranks that stand alike share a line. Communicators that somebody waits on come
// first; of many, the others are counted only. Lines fit kTextColumns.
std::string StateTable(const JobState& job);

}  // namespace rollcall
