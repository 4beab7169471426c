// SPDX-License-Identifier: Apache-2.0
// stacks.txt: all stacks of the incident, culprits first.
#pragma once

#include <string>

#include "rollcall/v1/incident.pb.h"

namespace rollcall {

std::string StacksToText(const v1::Incident& incident);

// One process, as StacksToText() prints it.
std::string StackToText(const v1::ProcessStack& stack);

}  // namespace rollcall
