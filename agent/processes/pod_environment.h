// SPDX-License-Identifier: Apache-2.0
// The environment of a process in a pod of Kubernetes, which it may not have inherited
// (kPodEnvironmentFile in interpose/environment.h).
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/strings/string_view.h"

namespace rollcall {

// `environ`: the process's own block, as in /proc/PID/environ. Returns the block with the variables
// of the pod's file that it lacks. The file belongs to the pod: it is read as a stranger's.
std::string WithPodVariables(std::string environ, const std::string& proc_root, pid_t pid);

// Does the same for a file with this content. Pure.
std::string AddPodVariables(std::string environ, absl::string_view content);

}  // namespace rollcall
