// SPDX-License-Identifier: Apache-2.0
// Finds the ranks to blame for a standstill: those for which the others wait, that are elsewhere,
// or that have ended. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <set>

#include "daemon/diagnosis/standing/stand_scene.h"
#include "daemon/model/verdict.h"

namespace rollcall {

struct StandBlame {
  StandShape shape = StandShape::kNone;
  std::set<size_t> culprits = {};     // ranks of the scene; kEnded and kStopped have others
  bool others_wait_for_them = false;  // by what their stacks show
};

// nullopt if it is not a hang, as far as the stacks show.
std::optional<StandBlame> BlameRanks(const StandScene& scene);

// The thread of a culprit that counts: the one that should answer the others.
const StandPlace* PlaceOfCulprit(const StandScene& scene, const StandBlame& blame, size_t i);
// What that thread waits in; kOwnServer: what the rank does, and not its child.
StandFunction WaitOfCulprit(const StandScene& scene, const StandBlame& blame, size_t i);

}  // namespace rollcall
