// SPDX-License-Identifier: Apache-2.0
// The hangs for which the daemon blames a host, and not the program. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "rollcall/v1/agent.pb.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

inline constexpr int kMostHangsOfHost = 64;

// By host, of these incidents. A hang counts if it is confirmed and open, its root cause is certain or
// likely and speaks against a host (SpeaksAgainstHost()), and blames one host alone: what blames several
// is rather the network, or the program.
std::map<std::string, v1::HostHangs> HangsByHost(const std::vector<v1::Incident>& incidents);

}  // namespace rollcall
