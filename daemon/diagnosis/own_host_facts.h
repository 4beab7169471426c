// SPDX-License-Identifier: Apache-2.0
// What the facts about a host may say to those who watch one job: the kernel's log names processes of
// all users. Pure.
#pragma once

#include <string>

#include "daemon/model/job_state.h"

namespace rollcall {

// Of messages of the kernel's log about processes that are none of the job's, keeps those that concern
// the job too, without pid and text: a lack of memory of the whole host, a CPU that was stuck, an
// error of a GPU that the job uses. Removes the others.
void KeepOwnHostFacts(const JobState& job, const std::string& host, HostFacts* facts);

}  // namespace rollcall
