// SPDX-License-Identifier: Apache-2.0
// The position of the ranks of an incident in the program: the innermost line of Python outside of
// libraries, from their newest stacks, the culprits' and the waiting ranks' side by side.
#pragma once

#include <string>

#include "rollcall/v1/incident.pb.h"

namespace rollcall {

// "/x/train.py:57 in train_epoch", of the main thread if it shows one; "": none does.
std::string PlaceOf(const v1::ProcessStack& stack);

// Fills in Culprit.at and Verdict.waiting_at.
void AddPlaces(v1::Incident* incident);

}  // namespace rollcall
