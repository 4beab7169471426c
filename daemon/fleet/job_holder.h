// SPDX-License-Identifier: Apache-2.0
// What the fleet's thread asks of the daemon that has the jobs. Only WithDatabase() may wait for
// long.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "daemon/fleet/daemon_row.h"
#include "daemon/fleet/job_claims.h"
#include "daemon/history/history.h"

namespace rollcall {

class JobHolder {
 public:
  virtual ~JobHolder() = default;

  // Takes, before Owns() becomes true, what an earlier owner found out.
  virtual void Adopt(const JobId& job, Continuation from_earlier) = 0;
  // After IsUnproven() has become false, because the job is this daemon's.
  virtual void Prove(const JobId& job) = 0;
  // The daemon takes the job and cannot learn the numbers that its incidents have elsewhere.
  virtual void TakeUnknown(const JobId& job) = 0;
  // After Owns() has become false. These agents must report the job again.
  virtual void Release(const JobId& job, const std::vector<std::string>& agents) = 0;

  // Whether the daemon still has something of the job.
  virtual bool Has(const JobId& job) const = 0;
  // The ids of the agents that report the job.
  virtual std::vector<std::string> Agents(const JobId& job) const = 0;
  // Whether ticks come from an agent that reports the job.
  virtual bool IsReached(const JobId& job) const = 0;
  // Whether an alert of the job is on its way to a receiver.
  virtual bool IsAlerting(const JobId& job) const = 0;

  // Answers a report. `owner`: address of the daemon that has the job; empty means this one.
  virtual void Tell(const JobReport& report, const std::string& owner) = 0;
  // Returns the daemons that report a working database connection. May wait for a second.
  virtual std::vector<DaemonRow> WithDatabase(const std::vector<DaemonRow>& daemons) const = 0;

  // Whether so much waits for the database that a hand-over would take long.
  virtual bool HasBacklog() const = 0;
  // Returns a function that reports whether all that was written before this call is in the
  // database.
  virtual std::function<bool()> Written() const = 0;
};

}  // namespace rollcall
