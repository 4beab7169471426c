// SPDX-License-Identifier: Apache-2.0
// What keeps a process from running at all: a signal, a debugger, the freezer of a control group.
#pragma once

#include <string>
#include <vector>

#include "daemon/model/verdict.h"

namespace rollcall {

// "stopped by a signal (state T)"; empty if it may run.
std::string StopInWords(char state, const std::string& wait_channel);

// Returns the same for all of them; empty if one may run, or they stand still for different
// reasons.
std::string StopOfAll(const std::vector<Culprit>& culprits);

// Whether one of them stands still for such a reason.
bool IsAnyStopped(const std::vector<Culprit>& culprits);

}  // namespace rollcall
