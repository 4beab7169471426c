// SPDX-License-Identifier: Apache-2.0
// Carries out --on-hang, once for each incident. hang_policy.h decides when it may.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "cli/run/child.h"
#include "cli/run/incident_watch.h"
#include "cli/run/local_progress.h"
#include "cli/run/run_flags.h"

namespace rollcall {

class HangAction {
 public:
  // `local`: of the ranks on this host, by which verdicts of a daemon on the network are checked;
  // nullptr if the daemon is this process's own. `abort` ends the job.
  HangAction(const RunFlags& flags, const InheritedSignals& inherited,
             std::unique_ptr<LocalProgress> local, std::function<void()> abort);

  // Acts on an incident of the job: acts as --on-hang requests, if it may.
  void ActIfDue(const ConfirmedIncident& incident);

 private:
  std::string WhyNotActOn(const ConfirmedIncident& incident) const;
  bool IsLeftToLauncher(const ConfirmedIncident& incident);
  void Execute(const ConfirmedIncident& incident) const;

  const std::string on_hang_;
  const int64_t hang_after_ns_;
  const InheritedSignals inherited_;
  const std::unique_ptr<LocalProgress> local_;
  const std::function<void()> abort_;
  std::set<std::string> acted_on_, held_back_;       // ids of incidents
  std::map<std::string, int64_t> left_to_launcher_;  // id of the incident -> end of the wait
};

}  // namespace rollcall
