// SPDX-License-Identifier: Apache-2.0
// Finds the position of an incident's ranks in the program: the innermost line outside of libraries
// in their newest stacks, for the culprits and for the waiting ranks.
#pragma once

#include <string>

#include "rollcall/v1/incident.pb.h"

namespace rollcall {

// "/x/train.py:57 in train_epoch", of the main thread if it shows one (FindPlace()); empty if none
// does.
std::string FindSite(const v1::ProcessStack& stack);

// Fills in Culprit.at and Verdict.waiting_at.
void AddSites(v1::Incident* incident);
// Does the same, from the stacks of another message: `incident` need not have a copy of them.
void AddSites(const v1::Incident& with_stacks, v1::Incident* incident);

}  // namespace rollcall
