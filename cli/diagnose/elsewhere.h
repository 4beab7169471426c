// SPDX-License-Identifier: Apache-2.0
// The flags of `rollcall diagnose` for other hosts, and the other end of them: the hidden flags
// with which it runs there.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/ras/ask_job.h"
#include "cli/remote/look_at_hosts.h"
#include "daemon/looks/ask_ras.h"
#include "rollcall/v1/look.pb.h"

namespace CLI {
class App;
}

namespace rollcall {

struct ElsewhereFlags {
  std::string hosts, slurm, kubernetes, container;
  std::string within;  // empty means 30 s, and more for samples that are further apart than usual
  std::string ras = "safe";
  std::string look;    // a token: print a look at this host for another one
  std::string ras_of;  // process numbers: the look is the answer of their RAS only

  bool is_elsewhere() const { return !hosts.empty() || !slurm.empty() || !kubernetes.empty(); }
};

void AddElsewhereFlags(CLI::App* app, ElsewhereFlags* flags);

RasUse RasUseOf(const ElsewhereFlags& flags);

// The hosts of a job, and how to reach them.
class Elsewhere {
 public:
  // `apart_ns`: from the first to the last sample of one process. An error is for people.
  static absl::StatusOr<Elsewhere> Find(const ElsewhereFlags& flags, int64_t apart_ns);

  // The arguments of rollcall there, for samples of one process so far apart.
  using Arguments = std::function<std::vector<std::string>(int64_t apart_ns)>;

  // With more hosts than are looked at at a time, each is looked at twice (merge_looks.h), so far
  // apart. Of a job of Slurm, without the processes of others.
  std::vector<v1::HostLook> Look(const Arguments& arguments,
                                 const std::function<void(const std::string&)>& tell) const;

  // Asks on the host of that look.
  v1::RasAnswer AskRas(const RasPlace& place) const;

 private:
  absl::Status FindTargets();
  std::vector<v1::HostLook> LookTwice(const Arguments& arguments,
                                      const std::function<void(const std::string&)>& tell) const;

  std::vector<RemoteTarget> targets_;
  int64_t apart_ns_ = 0;
  RemoteLimits limits_;
  std::string slurm_job_;  // empty if it is of no job of Slurm
  ElsewhereFlags flags_;
};

// Returns the limits for samples so far apart. An error, for people: --within is too short for
// these.
absl::StatusOr<RemoteLimits> LimitsFor(const std::string& within, int64_t apart_ns);

// Leaves out what belongs to other nodes than the look's, where one machine is several of them; and
// to other jobs of Slurm, if some process belongs to this one. Pure.
void KeepSlurmJob(const std::string& job, v1::HostLook* look);

// With --look: asks RAS if --ras-of is given, else takes `look`; and prints it. Returns the exit
// code.
int PrintLook(const ElsewhereFlags& flags, const std::function<v1::HostLook()>& look);

// What --ras-of may be: process numbers. Empty if it is something else.
std::vector<pid_t> PidsOf(const std::string& text);

}  // namespace rollcall
