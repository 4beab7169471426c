// SPDX-License-Identifier: Apache-2.0
// The id of a container, as the names of control groups in a /proc/PID/cgroup have it. Pure.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace rollcall {

// Returns the container's id at the beginning of `text`, its first 12 digits; empty without one.
std::string ContainerIdAt(absl::string_view text);

// Finds the container in "0::/kubepods.slice/.../cri-containerd-<id>.scope",
// "12:devices:/docker/<id>": the first.
std::string ContainerInGroups(absl::string_view groups);

// The same without ids in what a service, a session or a container of LXC may have been given to
// make groups of its own in: who has that can write as many ids as he likes.
std::string ContainerOfTheHost(absl::string_view groups);

}  // namespace rollcall
