// SPDX-License-Identifier: Apache-2.0
// Asks NCCL's RAS about the jobs that a look has found to stand: one query to one process for each
// job, on one of its hosts. What it answers joins the verdict (cli/ras/ras_join.h).
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/ras/ask_job.h"
#include "cli/ras/ras_join.h"
#include "daemon/looks/group.h"
#include "daemon/looks/judge.h"

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

// Asks about jobs that hang, and about those of which only counts can show it; about these twice,
// if the counts differ, with `pause` between. `ask` asks on the host of the place. `jobs`: of
// JudgeLooks(*looks). The answers go into the looks, too.
void AskRasOfJobs(std::vector<v1::HostLook>* looks, std::vector<LookedAtJob>* jobs,
                  const std::function<v1::RasAnswer(const RasPlace&)>& ask,
                  const std::function<void()>& pause);

}  // namespace rollcall
