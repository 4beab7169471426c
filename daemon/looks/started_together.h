// SPDX-License-Identifier: Apache-2.0
// Tells runs apart that share all marks of a job, an address for example: two jobs, or a job and
// what an earlier run of it has left behind. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/looks/looked_at.h"
#include "rollcall/v1/look.pb.h"

namespace rollcall {

// The rank of a process that lives; -1 if it has ended, or nothing gives its rank.
int32_t LivingRank(const v1::ProcessLook& process);

// `members`, in which two living processes may have one rank, as runs in which none have. Who was
// started by one launcher of a host is in one run; the runs of several hosts are joined where they
// have no rank twice. The run with most ranks of a host is of the first result, and among equals
// the newest one. At most kMostRuns: the last one takes in what is left, and may have ranks twice.
inline constexpr size_t kMostRuns = 64;
std::vector<std::vector<LookedAt>> TellRunsApart(const std::vector<v1::HostLook>& looks,
                                                 const std::vector<LookedAt>& members);

struct RunFacts {
  size_t ranks = 0;                   // that live
  size_t world = 0;                   // as its processes report; 0 if they do not
  std::map<size_t, uint64_t> newest;  // start of its newest process, by look
};
RunFacts FactsOf(const std::vector<v1::HostLook>& looks, const std::vector<LookedAt>& run);

// Whether a run was left behind, and is not a job of its own: it lacks ranks of its world, and has
// fewer than `whole`.
bool IsLeftBehind(const RunFacts& run, const RunFacts& whole);

}  // namespace rollcall
