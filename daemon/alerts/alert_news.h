// SPDX-License-Identifier: Apache-2.0
// What an alert contains of an incident: when it changes, an update follows. Pure.
#pragma once

#include <string>

#include "rollcall/v1/incident.pb.h"

namespace rollcall {

// Returns the cause of the root verdict; "" if there is none.
std::string RootCause(const v1::Incident& incident);

// The root cause, its culprits in an order of their own, the line of the first one, the first
// advice, and how often the hang has come back. Without times, which change always.
std::string WhatIsSaid(const v1::Incident& incident);

}  // namespace rollcall
