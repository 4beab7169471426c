// SPDX-License-Identifier: Apache-2.0
// Runs all probes at once, each with a deadline.
#pragma once

#include <string>
#include <vector>

#include "agent/link/daemon_channel.h"
#include "cli/doctor/facts.h"

namespace rollcall::doctor {

struct Questions {
  std::string library;               // path of librollcall.so; empty if not found
  std::vector<std::string> command;  // of the program to examine; may be empty
  DaemonAddress daemon;
  bool is_daemon_chosen = false;
  std::string version;  // of this program
  std::string root;     // of the system's files; "" but in tests
};

// Returns within some 25 seconds. A probe that has not ended by then leaves its facts as not
// answered; its thread is left behind, so the program must end by LeaveProcess().
Facts Gather(const Questions& questions);

}  // namespace rollcall::doctor
