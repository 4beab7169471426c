// What is wrong with a job: runs every rule and orders what they find.
//
// Pure: no clock, lock, log or I/O. Called by the daemon each tick and by
// `rollcall analyze` once; the same state gives the same answer.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

// Empty: nothing is wrong, or nothing has waited for long enough. Otherwise the
// first verdict is the root cause, and a verdict that another one explains
// (is_consequence) stands after it. Summary and advice are filled in.
std::vector<Verdict> Diagnose(const JobState& job, int64_t now_ns, const Limits& limits);

}  // namespace rollcall
