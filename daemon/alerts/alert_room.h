// SPDX-License-Identifier: Apache-2.0
// Which alert makes room for a new one, where too many wait for a receiver. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "rollcall/v1/incident.pb.h"

namespace rollcall {

// Of the alerts on these incidents, the oldest first: the oldest one of the job with most, of the
// user with most, of the tenant with most. REQUIRES: not empty.
size_t FindAlertThatMakesRoom(const std::vector<const v1::Incident*>& waiting);

}  // namespace rollcall
