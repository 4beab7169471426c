// A job's state in short, for `rollcall status` and the page.
#pragma once

#include <cstdint>

#include "daemon/model/job_state.h"
#include "rollcall/v1/query.pb.h"

namespace rollcall {

// Everything but what incidents add (a job is "running" or "ended" here).
void FillJobStatus(const JobState& state, int64_t now_ns, v1::JobStatus* status);

}  // namespace rollcall
