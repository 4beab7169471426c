// SPDX-License-Identifier: Apache-2.0
// Which alert makes room for a new one, where too many wait for a receiver. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "rollcall/v1/incident.pb.h"

namespace rollcall {

// Returns the index of the alert that makes room among those on these incidents, oldest first: the
// oldest of the job with most, of the user with most, of the tenant with most. REQUIRES: not empty.
size_t FindAlertThatMakesRoom(const std::vector<const v1::Incident*>& waiting);

}  // namespace rollcall
