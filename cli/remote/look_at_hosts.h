// SPDX-License-Identifier: Apache-2.0
// Looks at many hosts at once, each by a command that runs `rollcall diagnose --look` there. A host
// that does not answer has a look with its error, and the others are not kept waiting.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/remote/byte_budget.h"
#include "cli/remote/kubernetes_pods.h"
#include "cli/remote/remote_commands.h"
#include "rollcall/v1/look.pb.h"

namespace rollcall {

// A host, or the container of a pod.
struct RemoteTarget {
  std::string name;   // for people, and of the look
  std::string error;  // why it cannot be looked at; empty if it can
  // What runs the line of a shell there.
  std::function<Command(const std::string& line)> command;
  bool names_look = false;  // the look has the target's name, and not what the host calls itself
};

// The targets of --hosts, --slurm and --kubernetes. Errors are sentences with what to type.
// `hosts`: as ParseHosts() takes it, or the name of a file with such a text. A name that is a
// file's in this folder and a host's, by `is_host`, is the host.
using IsHost = std::function<bool(const std::string&)>;
absl::StatusOr<std::vector<RemoteTarget>> HostTargets(const std::string& hosts,
                                                      const IsHost& is_host);
// Whether the system finds an address for it, within some seconds.
bool HasAddress(const std::string& host);

struct SlurmTargetList {
  std::string job;  // as SlurmJob::id
  std::vector<RemoteTarget> targets;
};
absl::StatusOr<SlurmTargetList> SlurmTargets(const std::string& job, int64_t deadline_ns);
absl::StatusOr<std::vector<RemoteTarget>> KubernetesTargets(const std::string& wanted,
                                                            const std::string& container,
                                                            int64_t deadline_ns);

struct RemoteLimits {
  size_t at_once = 64;
  int64_t host_ns = 25'000'000'000;   // for one host
  int64_t total_ns = 30'000'000'000;  // for all of them
};

// That all looks take together, with what arrives of them.
inline constexpr uint64_t kMostMemoryOfLooks = 1ULL << 30;

struct RemoteWork {
  // The arguments of rollcall on that host: the subcommand and more. --look is added.
  std::vector<std::string> arguments = {"diagnose"};
  RemoteLimits limits;
  // From which the looks take their memory: one for all that are kept at a time. nullptr means of
  // kMostMemoryOfLooks bytes, for these looks.
  ByteBudget* budget = nullptr;
  // Called from the caller's thread, with one line for people: "12 of 512 hosts have answered".
  std::function<void(const std::string&)> tell;
};

// Returns the looks in the order of the targets. All looks end at one moment, each by the clock of
// its host.
std::vector<v1::HostLook> LookAtHosts(const std::vector<RemoteTarget>& targets,
                                      const RemoteWork& work);

}  // namespace rollcall
