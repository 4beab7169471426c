// SPDX-License-Identifier: Apache-2.0
// Converts the stacks of a process to the message that the wire and the report use.
#pragma once

#include "agent/processes/stack_sample.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

v1::ProcessStack ToProto(const ProcessStack& stack);

}  // namespace rollcall
