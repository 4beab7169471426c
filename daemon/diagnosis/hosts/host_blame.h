// SPDX-License-Identifier: Apache-2.0
// Whether a verdict speaks against a host, for systems that watch the health of hosts. Pure.
#pragma once

#include <optional>
#include <string>

#include "daemon/model/verdict.h"

namespace rollcall {

struct HostBlame {
  std::string host;
  // The host showed an error of its hardware. Without one the program may as well be at fault: an
  // endless kernel looks like a GPU that stands still.
  bool is_broken = false;
};

// nullopt if the verdict speaks against no host. One that blames several rather speaks against what
// they share, or against the program. One that is only possible counts for nothing. A lost host has
// no agent to hear of it.
std::optional<HostBlame> BlameHost(const Verdict& verdict);

}  // namespace rollcall
