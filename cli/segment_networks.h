// SPDX-License-Identifier: Apache-2.0
// Reads from the segments of a job, whose processes have ended, what their transfers over the
// network waited for last. For `rollcall analyze`.
#pragma once

#include <cstdint>

#include "daemon/model/job_state.h"

namespace rollcall {

// `state`: read from folders of segments, each as a host of that name. `last_ns`: the last sign of
// the job. Leaves out what cannot be read.
void AddSegmentNetworks(int64_t last_ns, JobState* state);

}  // namespace rollcall
