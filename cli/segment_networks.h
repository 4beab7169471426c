// SPDX-License-Identifier: Apache-2.0
// Reads from the segments of a job, whose processes have ended, what their transfers over the
// network waited for last. For `rollcall analyze`.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "daemon/model/job_state.h"

namespace rollcall {

// `folders`: of the segments from which `state` was read. `communicators`: of which. `last_ns`: the
// last sign of the job. Leaves out what cannot be read.
void AddSegmentNetworks(const std::set<std::string>& folders,
                        const std::vector<uint64_t>& communicators, int64_t last_ns,
                        JobState* state);

}  // namespace rollcall
