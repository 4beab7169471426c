// SPDX-License-Identifier: Apache-2.0
// An incident without its large parts: stacks and what hosts showed. Pure.
#pragma once

#include "rollcall/v1/incident.pb.h"

namespace rollcall {

// Never copies the stacks: those of thousands of ranks take megabytes.
v1::Incident WithoutStacks(const v1::Incident& incident);

}  // namespace rollcall
