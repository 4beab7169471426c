// SPDX-License-Identifier: Apache-2.0
// Incidents of an earlier daemon, for the one that continues them. Pure.
#pragma once

#include "daemon/diagnosis/life/incident_life.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

// Returns the facts by which IncidentLife recognizes the incident. Times are the wall clock's.
Incident FromStored(const v1::Incident& incident);

}  // namespace rollcall
