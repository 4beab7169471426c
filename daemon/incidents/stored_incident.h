// SPDX-License-Identifier: Apache-2.0
// Incidents of an earlier daemon, for the one that continues them. Pure.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "daemon/diagnosis/incident_life.h"
#include "daemon/jobs/known_hosts.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

// The facts by which IncidentLife recognizes the incident. Times are the wall clock's.
Incident FromStored(const v1::Incident& incident);

// "node-7 has not reported since the daemon was restarted"; names a few hosts and their number.
std::string MissingHostsInWords(const std::set<std::string>& hosts);

// For a job whose hosts are unknown.
std::string UnreportedRanksInWords(const RankCount& ranks);

// No verdict that lacks a host is certain. `line` becomes part of the missing evidence, once.
void Weaken(const std::string& line, std::vector<Verdict>* verdicts);
void Weaken(const std::string& line, v1::Incident* incident);

}  // namespace rollcall
