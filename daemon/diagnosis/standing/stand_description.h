// SPDX-License-Identifier: Apache-2.0
// What is shown of a standstill: its culprits, what they and the others wait in, for whom. Pure.
#pragma once

#include "daemon/diagnosis/standing/stand_blame.h"
#include "daemon/diagnosis/standing/stand_scene.h"
#include "daemon/model/verdict.h"

namespace rollcall {

void DescribeStandstill(const StandScene& scene, const StandBlame& blame, Verdict* verdict);

}  // namespace rollcall
