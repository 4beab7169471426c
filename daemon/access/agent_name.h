// SPDX-License-Identifier: Apache-2.0
// The identity of the agent at the other end of a stream.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "security/identity.h"

namespace rollcall {

struct AgentName {
  std::string host;
  std::string id;       // of this run of the agent; the stream's own id if the agent sends none
  int64_t tick_ns = 0;  // interval between ticks, as the agent reports it; 0 if not reported
  // The agent runs inside this process, so no other process can use its name.
  bool is_trusted = false;
  bool follows_owners = false;                // v1::Hello
  bool wants_host_hangs = false;              // v1::Hello
  std::vector<std::string> tenants = {kAll};  // that it may write: those of its credential
  std::string release = {};                   // that it reports; empty if it reports none
};

}  // namespace rollcall
