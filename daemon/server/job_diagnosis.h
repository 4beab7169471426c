// SPDX-License-Identifier: Apache-2.0
// One look at every job: diagnoses it, has the incident book apply what was found, and asks for the
// stacks that this calls for.
//
// For the daemon's diagnosing thread only. Owns what a job's next look needs of the last, without a
// lock. A job is diagnosed under its mutex in JobStore, and that of the incident book is taken
// under it; agents are asked afterwards, with no lock held.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/diagnosis/diagnose.h"
#include "daemon/server/call_rate.h"
#include "daemon/server/incident_book.h"
#include "daemon/server/job_store.h"
#include "daemon/server/stack_desk.h"
#include "daemon/server/start_watch.h"
#include "daemon/server/timeline.h"

namespace rollcall {

class JobDiagnosis {
 public:
  // All outlive this object.
  struct Parts {
    JobStore* store;
    IncidentBook* incidents;
    StackDesk* stacks;
    CallRates* rates;
    Timeline* timeline;
  };

  // A job is forgotten when it has ended for `keep_ended_ns`.
  JobDiagnosis(Parts parts, const Limits& limits, int64_t keep_ended_ns)
      : parts_(parts), limits_(limits), keep_ended_ns_(keep_ended_ns) {}

  void LookAtAll(int64_t now_ns);

 private:
  struct Job {
    Diagnoser diagnoser;
    StartWatch start;
    int64_t ended_ns = 0;  // when all its processes had; 0: they have not
    uint64_t version = 0;  // of the state that was diagnosed last
  };

  void LookAt(const std::string& name, int64_t now_ns);
  std::vector<StackRequest> Diagnose(const JobState& state, int64_t now_ns, Job* job);
  bool IsOver(const std::string& name, const Job& job, uint64_t version) const;
  void Forget(const std::string& name);

  const Parts parts_;
  const Limits limits_;
  const int64_t keep_ended_ns_;
  std::map<std::string, Job> jobs_;
};

}  // namespace rollcall
