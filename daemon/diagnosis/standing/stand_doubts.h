// SPDX-License-Identifier: Apache-2.0
// What may be concluded of a job that stands: nothing where it may be without work or go on by
// itself, and no more than `possible` where the stacks leave a doubt. Pure.
#pragma once

#include "daemon/diagnosis/standing/stand_blame.h"
#include "daemon/diagnosis/standing/stand_scene.h"

namespace rollcall {

// A person, a GPU, another host or a server without requests may be what they wait for.
bool MayWaitOutOfSight(const StandScene& scene);

// The culprits, or all, may go on by themselves.
bool MayGoOn(const StandScene& scene, const StandBlame& blame);

// If false, it is `possible` at most.
bool CanBeLikely(const StandScene& scene, const StandBlame& blame);

}  // namespace rollcall
