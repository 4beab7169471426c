// SPDX-License-Identifier: Apache-2.0
// What `rollcall run` runs beside the job: the folder of the segments, the daemon inside this
// process or the link to another one, the agent, and the watch on incidents.
//
// Nothing here fails the job. Each part that does not start prints why, and the job runs without
// it. A thread that waits for a folder without an answer is left behind.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/link/agent.h"
#include "agent/link/agent_info.h"
#include "agent/link/fleet_agent.h"
#include "base/unique_fd.h"
#include "cli/run/flight_recorders.h"
#include "cli/run/gpu_dumps.h"
#include "cli/run/incident_watch.h"
#include "cli/run/job_directory.h"
#include "cli/run/local_progress.h"
#include "cli/run/run_flags.h"
#include "daemon/access/daemon_security.h"
#include "daemon/daemon.h"

namespace rollcall {

class RunServices {
 public:
  // `command`: what starts the job.
  RunServices(const RunFlags& flags, std::string job, const std::vector<std::string>& command);

  void Start();
  // Ends agent and daemon, with their last tick and diagnosis.
  void Stop();
  // Removes the folder of the segments. Afterwards the functions below are of no use. `ended_well`:
  // the job, without a verdict; its dumps of PyTorch's Flight Recorder are of no use either.
  void RemoveFolder(bool ended_well);

  // What the job's processes need in their environment.
  std::map<std::string, std::string> EnvironmentOfJob() const;

  // Returns the folder of the segments; empty if Rollcall made none.
  const std::string& folder() const { return directory_->path(); }
  bool has_library() const { return !library_.empty(); }
  IncidentWatch* incidents() { return incidents_.get(); }  // nullptr if there is no daemon
  // A check of the ranks on this host; nullptr if the daemon is inside this process, or there is
  // none.
  std::unique_ptr<LocalProgress> WatchLocalProgress() const;
  // A daemon on the network judges the agent's last tick after the agent has sent it.
  bool MayGetLateVerdict() const;
  // Whether dumps of GPUs for this incident may still come. The code that ends the job waits for
  // them.
  bool AwaitsGpuDumps(const std::string& incident) const;
  // Prints why Rollcall saw no communicator, if it saw none.
  void ExplainNoCommunicator() const;

 private:
  bool MakeFolder();
  bool StartDaemon();
  bool StartDaemonWith(const DaemonOptions& options);
  void SayWhereThePageIs(const std::string& token) const;
  void WarnOfOpenPage() const;  // of --insecure
  std::string UsableReportDir() const;
  void UseDaemonElsewhere();
  std::optional<HostAgent> FindAgentOfHost() const;
  AgentOptions MakeAgentOptions() const;
  void StartAgent();
  bool AgentSawCommunicators() const;
  bool UsesRecorders() const;
  void RemoveRecorderFiles(bool with_dumps) const;
  void PrepareGpuDumps();
  void RemoveGpuDumpFiles() const;

  const RunFlags flags_;
  const std::string job_;
  const bool is_job_elsewhere_;  // its ranks may run on other hosts, or in containers
  // Shared with threads that wait for a folder without an answer.
  std::shared_ptr<JobDirectory> directory_ = std::make_shared<JobDirectory>();
  UniqueFd served_;                             // see JobDirectory::LockAsServed()
  std::string library_;                         // empty means the job runs without Rollcall
  std::string recorder_prefix_;                 // of the job's Flight Recorders, or empty
  std::unique_ptr<FlightRecorders> recorders_;  // for the embedded daemon
  std::string gpu_dump_folder_;                 // empty means no GPU is dumped
  std::unique_ptr<GpuDumps> gpu_dumps_;         // for the embedded daemon
  std::unique_ptr<DaemonSecurity> security_;    // of the embedded daemon
  std::unique_ptr<Daemon> daemon_;
  std::shared_ptr<DaemonChannels> channels_;  // to a daemon elsewhere
  std::unique_ptr<Agent> agent_;              // of the embedded daemon
  std::unique_ptr<FleetAgent> fleet_agent_;   // of daemons elsewhere
  std::unique_ptr<IncidentWatch> incidents_;
};

}  // namespace rollcall
