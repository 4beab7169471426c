// SPDX-License-Identifier: Apache-2.0
// How a process was started and where it runs, from its environment and /proc: the attempt of its
// job, its launch, node, pod, container, and GPU. By these facts the daemon distinguishes the
// attempts of a job.
//
// May block: see spare_threads.h. A fact that neither source shows stays empty.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace rollcall {

struct LaunchFacts {
  int32_t attempt = -1;  // by the launcher's counter; -1 means no launcher counts
  std::string restarts;  // all counters, "TORCHELASTIC_RESTART_COUNT=1 SLURM_RESTART_COUNT=2"
  std::string launch;    // user and rendezvous, equal for a start's processes; empty if unknown
  // Its job goes on while it starts again, and takes it back: a replica of torchft. It has no
  // launch then, and torchrun's counter does not count.
  bool may_rejoin = false;
  std::string tenant;      // ROLLCALL_TENANT; empty if unset
  std::string stacks_off;  // "ROLLCALL_STACKS=off" if the process has switched its stacks off
  std::string node;        // the scheduler's name of this host
  std::string pod;         // "namespace/name"
  std::string pod_uid;     // its metadata.uid
  std::string container;   // the first 12 digits of its id
  pid_t inner_pid = 0;     // in its own pid namespace; 0 means the same, or unknown
  int64_t uid = -1;        // its owner, or its container's, by the kernel; -1 if unknown
  std::string gpu_uuid;    // "GPU-..." or "MIG-...", if it is known without a doubt
  // The variables that change how NCCL and torch.distributed behave, sorted: "NCCL_ALGO=Ring
  // NCCL_DEBUG=INFO". Of variables of NCCL that known_settings.h does not list, e.g. those of
  // plugins, the length of the value: "NCCL_MY_PLUGIN=[14 characters]".
  std::string environment;
  std::string stdout_to, stderr_to;  // a path, "a pipe", "a socket"; empty if unknown
};

// nullopt if the environment cannot be read. `host`: the name of this host.
std::optional<LaunchFacts> ReadLaunchFacts(const std::string& proc_root, pid_t pid,
                                           const std::string& host);

}  // namespace rollcall
