// SPDX-License-Identifier: Apache-2.0
// Judges the dumps that the Flight Recorders of a running job have written. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/flight_recorder/dump_files.h"
#include "daemon/model/job_state.h"
#include "daemon/model/verdict.h"

namespace rollcall {

// `dumps`: one for each rank of the job, taken while no rank moved. The verdicts name the processes
// of the job, and where these stand. Never `certain`: PyTorch counts calls of a process group, and
// stacks alone show that no rank moves. `now_ns`: by the clock of the dumps, since 1970.
std::vector<Verdict> JudgeDumps(std::vector<RankedDump> dumps, const JobState& job, int64_t now_ns);

}  // namespace rollcall
