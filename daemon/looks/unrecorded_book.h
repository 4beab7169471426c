// SPDX-License-Identifier: Apache-2.0
// The distributed jobs that run without Rollcall's library, as the agents list their ranks. In
// memory only: an agent's list replaces the one before, and goes with the agent.
//
// A list is a stranger's: the book keeps so many ranks of an agent and of all, and only those of
// tenants that the agent may write. Which ranks are of one job it decides as `rollcall diagnose`
// does (group.h), within a tenant.
//
// Thread-safe. Its mutex is taken last. It groups without it: lists come on gRPC's threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "daemon/access/agent_name.h"
#include "daemon/model/job_key.h"
#include "daemon/model/tenants.h"
#include "rollcall/v1/agent.pb.h"
#include "rollcall/v1/look.pb.h"
#include "rollcall/v1/query.pb.h"

namespace rollcall {

// The ranks of one job that one agent has listed.
struct ListedRanks {
  std::string agent;   // id
  v1::HostLook look;   // its host, and the ranks without samples
  size_t members = 0;  // the first ranks; an earlier run has left the others behind
};

struct ListedJob {
  JobId id;
  std::vector<ListedRanks> hosts;
};

class UnrecordedBook {
 public:
  static constexpr size_t kMostOfAgent = 1024;  // as in v1::UnrecordedProcesses
  static constexpr size_t kMostOfAll = size_t{1} << 18;
  static constexpr size_t kMostJobs = 1000;  // in an answer

  void Set(const AgentName& agent, const v1::UnrecordedProcesses& list) ABSL_LOCKS_EXCLUDED(mutex_);
  // The agent is gone, or begins anew.
  void Remove(const std::string& agent) ABSL_LOCKS_EXCLUDED(mutex_);

  // Sorts by tenant and name. Of more than kMostJobs each user has the same share first. `now_ns`:
  // on the wall clock; no time in the answer is later.
  std::vector<v1::UnrecordedJob> Jobs(const Tenants& tenants, int64_t now_ns) const
      ABSL_LOCKS_EXCLUDED(grouping_, mutex_);
  // The ranks of a job. kNotFound names those that there are; kInvalidArgument: several tenants
  // have one of this name. `tenant`: empty means any.
  absl::StatusOr<ListedJob> Find(const std::string& job, const std::string& tenant,
                                 const Tenants& tenants) const
      ABSL_LOCKS_EXCLUDED(grouping_, mutex_);
  // Another one after each change of what Jobs() gives for these tenants.
  uint64_t version(const Tenants& tenants) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct List {
    std::string host;
    std::map<std::string, std::vector<v1::ProcessLook>> of_tenant;
    size_t ranks = 0;
  };
  using JobMap = std::map<JobId, std::vector<ListedRanks>>;

  using Lists = std::map<std::string, std::shared_ptr<const List>>;  // by agent

  std::shared_ptr<const JobMap> Grouped() const ABSL_LOCKS_EXCLUDED(grouping_, mutex_);
  void RemoveLocked(const std::string& agent) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountChange(const List& list) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static JobMap Group(const Lists& lists);

  mutable Mutex grouping_;  // one groups, the others wait for what it finds; taken before mutex_
  mutable Mutex mutex_;
  Lists lists_ ABSL_GUARDED_BY(mutex_);
  size_t ranks_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;
  // By tenant: what changes_ was after its last change.
  std::map<std::string, uint64_t> changed_in_ ABSL_GUARDED_BY(mutex_);
  mutable std::shared_ptr<const JobMap> grouped_ ABSL_GUARDED_BY(mutex_);  // nullptr if not yet
};

}  // namespace rollcall
