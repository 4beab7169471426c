// SPDX-License-Identifier: Apache-2.0
// The hosts of --hosts, and what a name of a host, a pod or a job may be: it becomes an argument of
// ssh, srun or kubectl. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace rollcall {

inline constexpr size_t kMostRemoteHosts = 4096;

// Names of hosts, "user@host" too: separated by commas, or one a line as in a host file of MPI
// ("node-1 slots=8", "node-1:8", "# a comment"). Each name once, in their order. An error names the
// first that is invalid: it begins with "-" or has other characters than those of names and
// addresses.
absl::StatusOr<std::vector<std::string>> ParseHosts(absl::string_view text);

// Letters, digits and some of "._-@:%[]"; not empty, not longer than 255, and not with "-" at its
// beginning.
bool IsHostName(absl::string_view text);

// As Kubernetes names things: letters, digits, '.' and '-'; it begins with a letter or digit.
bool IsKubernetesName(absl::string_view text);

// "123", "123_4", "123+1".
bool IsSlurmJob(absl::string_view text);

}  // namespace rollcall
