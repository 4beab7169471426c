// SPDX-License-Identifier: Apache-2.0
// The commands that run a line of a shell elsewhere, as programs and arguments. No shell of this
// host takes part. Pure.
#pragma once

#include <string>
#include <vector>

namespace rollcall {

using Command = std::vector<std::string>;

// `line`: for `sh -c`. Neither asks for a password.
Command SshCommand(const std::string& host, const std::string& line);
Command SrunCommand(const std::string& job, const std::string& node, const std::string& line);

struct PodPlace {
  std::string name_space, pod, container;
};
Command KubectlCommand(const PodPlace& place, const std::string& line);

}  // namespace rollcall
