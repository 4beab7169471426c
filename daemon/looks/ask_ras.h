// SPDX-License-Identifier: Apache-2.0
// Asks NCCL's RAS about the jobs that a look has found to stand: one query to one process for each
// job, on one of its hosts. What it answers joins the verdict (daemon/ras/ras_join.h). Pure.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "daemon/looks/group.h"
#include "daemon/looks/judge.h"
#include "daemon/ras/ras_join.h"

namespace rollcall {

// The rank to ask about one job.
struct RasPlace {
  size_t look = 0;          // of this host
  std::vector<pid_t> pids;  // its ranks there that use NCCL
  std::string address;      // NCCL_RAS_ADDR of these
  // A rank of the job, on any host, creates or ends a communicator, or may: it is unknown what it
  // does.
  bool changes_communicators = false;
};

// nullopt if none of its ranks uses NCCL. The host with most of them.
std::optional<RasPlace> ChooseRasPlace(const std::vector<v1::HostLook>& looks,
                                       const LookGroup& group);

// The ranks of the job as JoinRas() wants them.
std::vector<RasMember> RasMembers(const std::vector<v1::HostLook>& looks, const LookGroup& group);

// Whether a thread of the process creates, splits, ends or aborts a communicator of NCCL.
bool IsInCommunicatorLife(const v1::ProcessStack& stack);

// Asks on the host of the place.
using AskRas = std::function<v1::RasAnswer(const RasPlace&)>;

// Asks about jobs that hang, and about those of which only counts can show it; about these twice,
// if the counts differ, with `pause` between. `jobs`: of JudgeLooks(looks).
void AskRasOfJobs(const std::vector<v1::HostLook>& looks, std::vector<LookedAtJob>* jobs,
                  const AskRas& ask, const std::function<void()>& pause);

// JudgeLooks() of looks that have the answers of RAS: a daemon has asked.
std::vector<LookedAtJob> JudgeWithRas(const std::vector<v1::HostLook>& looks);

}  // namespace rollcall
