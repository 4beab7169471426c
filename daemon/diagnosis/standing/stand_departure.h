// SPDX-License-Identifier: Apache-2.0
// Compares where all ranks stand in the program. Pure.
#pragma once

#include <set>

#include "daemon/diagnosis/standing/stand_scene.h"

namespace rollcall {

// Walks the stacks from the outside to the innermost function that all ranks are in by the same
// calls, and returns the ranks that are there at another line than most, or, where no line has most
// of them, outside of the loop that most are in. Empty: nothing there holds most ranks.
std::set<size_t> FindDeparted(const StandScene& scene);

}  // namespace rollcall
