// SPDX-License-Identifier: Apache-2.0
// A process's stacks as the wire and the report have them.
#pragma once

#include "agent/processes/stack_sample.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

v1::ProcessStack ToProto(const ProcessStack& stack);

}  // namespace rollcall
