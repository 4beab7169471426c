// SPDX-License-Identifier: Apache-2.0
// The lists of jobs of several daemons as one list. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "rollcall/v1/query.pb.h"

namespace rollcall {

// What one daemon has listed: the beginning of its list, or all of it.
struct DaemonJobs {
  std::string daemon;
  std::vector<v1::JobStatus> jobs;
  size_t total = 0;
};

// A job of such a list.
struct FleetJob {
  size_t daemon = 0;  // index in the lists
  size_t place = 0;   // in that daemon's list
};

// The name of the daemon that owns the job; empty if unknown.
using OwnerName = std::function<std::string(const std::string& tenant, const std::string& job)>;

// Each job once, in the order of one daemon's list: first those with an open incident, then the
// others, both by tenant and name. A job that moves is for some seconds in two lists: its owner's
// counts, else the one with more live processes.
std::vector<FleetJob> JoinJobs(const std::vector<DaemonJobs>& lists, const OwnerName& owner);

}  // namespace rollcall
