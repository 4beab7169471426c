// SPDX-License-Identifier: Apache-2.0
// The jobs of this daemon, as its fleet takes them over and drops them, and the answers to agents
// of other daemons' jobs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "daemon/agents/agent_service.h"
#include "daemon/fleet/job_holder.h"
#include "daemon/incidents/incident_book.h"
#include "daemon/jobs/job_store.h"
#include "daemon/loop/job_runners.h"
#include "daemon/queries/fleet_queries.h"

namespace rollcall {

class HeldJobs final : public JobHolder {
 public:
  // All of them outlive this.
  struct Parts {
    const JobOwnership* ownership;
    JobStore* store;
    IncidentBook* incidents;
    AgentService* agents;
    JobRunners* runners;
    const FleetQueries* queries;
  };
  explicit HeldJobs(const Parts& parts) : parts_(parts) {}

  void Adopt(const JobId& job, Continuation from_earlier) override;
  void Prove(const JobId& job) override { parts_.incidents->takeover().StoreProven(job); }
  void TakeUnknown(const JobId& job) override {
    parts_.incidents->takeover().AvoidNumbersOfOthers(job);
  }
  void Release(const JobId& job, const std::vector<std::string>& agents) override;
  bool Has(const JobId& job) const override {
    return parts_.incidents->reader().HasJob(job) || !parts_.store->jobs().KeysOf(job).empty();
  }
  std::vector<std::string> Agents(const JobId& job) const override {
    return parts_.store->AgentsOf(job);
  }
  bool IsReached(const JobId& job) const override { return parts_.store->IsHeard(job); }
  bool IsAlerting(const JobId& job) const override {
    return parts_.incidents->writers().alerts->IsDelivering(job);
  }
  void Tell(const JobReport& report, const std::string& owner) override;
  std::vector<DaemonRow> WithDatabase(const std::vector<DaemonRow>& daemons) const override {
    return parts_.queries->WithDatabase(daemons);
  }
  bool HasBacklog() const override { return parts_.incidents->writers().HasBacklog(); }
  std::function<bool()> Written() const override {
    return parts_.incidents->writers().history->Barrier();
  }

 private:
  const Parts parts_;
};

}  // namespace rollcall
