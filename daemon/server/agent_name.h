// SPDX-License-Identifier: Apache-2.0
// Who speaks on an agent's stream.
#pragma once

#include <cstdint>
#include <string>

namespace rollcall {

struct AgentName {
  std::string host;
  std::string id;           // of this run of the agent; of the stream where the agent gives none
  int64_t tick_ns = 0;      // from one of its ticks to the next, as it says; 0: it does not
  bool is_trusted = false;  // it runs inside this process: nobody else can speak in its name
};

}  // namespace rollcall
