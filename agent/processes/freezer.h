// SPDX-License-Identifier: Apache-2.0
// Whether a process is frozen by a control group of version 1. Version 2 makes each of its threads
// wait in a function of the kernel that shows it. Version 1 leaves them, since Linux 6.1, in the
// one that they waited in.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/strings/string_view.h"

namespace rollcall {

// The group of the freezer of version 1 in a /proc/PID/cgroup: "/job_7". Empty if there is none, or
// it cannot be frozen (the topmost one), or it lies outside what this program sees.
std::string FreezerGroup(absl::string_view cgroup_file);

// False if it is not frozen, or not by version 1, or the kernel does not show it. `freezer`: where
// the freezer is mounted.
bool IsFrozenByGroup(const std::string& proc_root, pid_t pid,
                     const std::string& freezer = "/sys/fs/cgroup/freezer");

}  // namespace rollcall
