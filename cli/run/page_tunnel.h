// SPDX-License-Identifier: Apache-2.0
// How a person opens the page of a run on another computer. Pure.
#pragma once

#include <functional>
#include <string>

namespace rollcall {

using GetVariable = std::function<const char*(const char*)>;

// Returns the command that forwards the page of this host to the person's computer, or "". It is
// needed if the address is a loopback address ("127.0.0.1:41234") and the variables show that the
// person sits elsewhere: sshd sets SSH_CONNECTION, and Slurm sets SLURM_JOB_ID on compute nodes.
std::string TunnelToPage(const std::string& address, const std::string& host,
                         const GetVariable& get);

}  // namespace rollcall
