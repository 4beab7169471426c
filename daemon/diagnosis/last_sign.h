// SPDX-License-Identifier: Apache-2.0
// When a job that is read from files gave its last sign. Pure.
#pragma once

#include <cstdint>

#include "daemon/model/job_state.h"

namespace rollcall {

// The newest time in the records, waits and ends of the job's processes; 0 without any. Other
// jobs in the same folder may have lived for longer.
int64_t LastSignNs(const JobState& job);

}  // namespace rollcall
