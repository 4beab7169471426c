// SPDX-License-Identifier: Apache-2.0
// Finds out which attempts on a daemon are the job of this `rollcall run`. The daemon may have
// several jobs and attempts of one name, which run at once or have ended.
//
// An attempt is this run's if it has a communicator of the segments in the run's folder. A job
// without a communicator is recognized by its processes: by host and pid. One owner, one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/worker.h"
#include "cli/run/local_progress.h"
#include "daemon/model/job_key.h"
#include "rollcall/v1/query.grpc.pb.h"

namespace rollcall {

enum class Ownership {
  kUnknown,        // the daemon does not answer
  kNo,             // so far: a process may join the attempt later
  kByProcess,      // the attempt has a process of this run
  kByCommunicator  // and a communicator
};

void SetDeadline(SteadyTime deadline, grpc::ClientContext* context);

class OwnAttempts {
 public:
  // `stub` must outlive this object. `directory`: of the segments. `host`: the name under which an
  // agent reports this host.
  OwnAttempts(v1::Query::Stub* stub, std::string directory, std::string host);
  // Asks through this one from now on.
  void UseStub(v1::Query::Stub* stub) { stub_ = stub; }

  // Asks the daemon about these attempts until `deadline`, those first that it has not asked about
  // for longest. Asks about an attempt twice a second at most, until the answer is kByCommunicator.
  // `at_once`: also about those asked about a moment ago.
  void Learn(const std::set<JobKey>& attempts, SteadyTime deadline, bool at_once = false);
  // What the answers so far contain.
  Ownership Of(const JobKey& attempt) const;

 private:
  struct Known {
    Ownership ownership = Ownership::kUnknown;
    int64_t ask_again_ns = 0;  // monotonic
  };

  Ownership Ask(const JobKey& attempt, SteadyTime deadline) const;
  Ownership AskForCommunicators(const JobKey& attempt, SteadyTime deadline) const;
  Ownership AskForProcesses(const JobKey& attempt, SteadyTime deadline) const;
  std::set<pid_t> Pids() const;

  v1::Query::Stub* stub_;
  const std::string directory_;
  const std::string host_;
  std::unique_ptr<LocalProgress> local_;  // from the first query on
  std::map<JobKey, Known> known_;
};

}  // namespace rollcall
