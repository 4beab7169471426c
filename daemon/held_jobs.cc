// SPDX-License-Identifier: Apache-2.0
#include "daemon/held_jobs.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "rollcall/v1/agent.pb.h"

namespace rollcall {

void HeldJobs::Adopt(const JobId& job, Continuation from_earlier) {
  parts_.store->places()->RestoreAttempts(from_earlier.attempts);
  parts_.incidents->takeover().Adopt(job, std::move(from_earlier));
  // It may have ended already, so that nothing else leads to a look at its incident.
  if (parts_.ownership->Owns(job)) parts_.runners->Wake(parts_.store->jobs().KeysOf(job));
}

void HeldJobs::Release(const JobId& job, const std::vector<std::string>& agents) {
  parts_.incidents->takeover().Release(job);
  parts_.runners->Wake(parts_.store->jobs().KeysOf(job));
  // Their next streams begin with the names of all jobs, for which they learn the owner.
  for (const std::string& agent : agents) parts_.agents->Restart(agent);
}

void HeldJobs::Tell(const JobReport& report, const std::string& owner) {
  if (report.follows_owners) {
    v1::DaemonMessage message;
    v1::Owners::Job* job = message.mutable_owners()->add_jobs();
    job->set_tenant(report.tenant);
    job->set_job(report.name);
    job->set_daemon(owner);
    message.mutable_owners()->set_send_whole(owner.empty());
    parts_.agents->Send(report.agent, message);
  } else if (owner.empty()) {
    // An older agent sends its whole state to a new stream only.
    parts_.agents->Restart(report.agent);
  } else {
    spdlog::warn(
        "an agent of an older release reports the job {} here, but the daemon {} owns it: "
        "upgrade the agent, or let it report to that daemon",
        ToText(report.job), owner);
  }
}

}  // namespace rollcall
