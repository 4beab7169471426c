// SPDX-License-Identifier: Apache-2.0
// A thread that a culprit lacks: the others have one that runs the same function. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "daemon/diagnosis/standing/stand_blame.h"
#include "daemon/diagnosis/standing/stand_scene.h"

namespace rollcall {

// The function that a thread of Python was started for, with its module: "train.prefetch"; empty if
// unknown.
std::string FindThreadFunction(const StandThread& thread);

// Such a function of a thread that all waiting ranks have, and this culprit has not, where it waits
// for what its own threads bring: "prefetch"; else "".
std::string FindLackingThread(const StandScene& scene, const StandBlame& blame, size_t culprit);

}  // namespace rollcall
