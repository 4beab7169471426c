// SPDX-License-Identifier: Apache-2.0
// Runs one command that looks at another host, sends this program where it is asked for, and takes
// the look. The command is a stranger's in all but its first program: time and sizes have limits.
//
// Thread-safe. The command gets this process's environment, because ssh and kubectl need it.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "cli/remote/byte_budget.h"
#include "cli/remote/remote_commands.h"
#include "rollcall/v1/look.pb.h"

namespace rollcall {

struct RemoteLook {
  v1::HostLook look;
  std::string error;       // why there is no output, for people; empty if there is
  int64_t arrived_ns = 0;  // on the monotonic clock; 0 if nothing has arrived
};

// `deadline_ns`: of the monotonic clock. Takes from `budget` what the look takes in memory.
RemoteLook TakeRemoteLook(const Command& command, const std::string& token,
                          absl::string_view program, int64_t deadline_ns, ByteBudget* budget);

struct CommandOutput {
  std::string out;
  std::string error;  // why it is not whole; empty if the command ended well
};

// For scontrol and `kubectl get`: at most 64 MiB.
CommandOutput RunToEnd(const Command& command, int64_t deadline_ns);

}  // namespace rollcall
