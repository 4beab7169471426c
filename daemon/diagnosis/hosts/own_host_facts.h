// SPDX-License-Identifier: Apache-2.0
// What the facts about a host may show to those who watch one job: the kernel's log names processes
// of all users. Pure.
#pragma once

#include <string>

#include "daemon/model/job_state.h"

namespace rollcall {

// Of messages of the kernel's log about processes that are not ranks of the job, keeps those that
// may concern the job, without pid and text: a lack of memory of the whole host, or of a control
// group if one of the job's has met its limit; a process that is blocked; a CPU that was stuck; an
// error of a GPU that is not known to belong to others. Removes the others.
void KeepOwnHostFacts(const JobState& job, const std::string& host, HostFacts* facts);

}  // namespace rollcall
