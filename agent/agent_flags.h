// SPDX-License-Identifier: Apache-2.0
// The flags of rollcall-agent: their table, and the options of the agent that follow from them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "agent/link/agent.h"
#include "agent/link/daemon_channel.h"
#include "agent/redact_flag.h"
#include "service/service_flags.h"

namespace CLI {
class App;
}

namespace rollcall {

struct AgentFlags {
  AgentFlags();

  ServiceFlags service;
  AgentOptions options;  // what a flag sets directly
  DaemonAddress daemon;
  double keep_ended_seconds = 3600;
  std::string scope = "host", stacks = "on", host_facts = "on", list_unrecorded = "on";
  RedactFlags redact;
  std::string nvsentinel, nvsentinel_may = "store";
};

// Returns the folder of segments of this user, without --dir.
std::string DefaultSegmentDirectory();

// Returns the table. `*flags` must outlive the parsing.
std::unique_ptr<CLI::App> MakeAgentApp(AgentFlags* flags);

// The options that follow from the parsed flags. An error names the wrong flag.
absl::StatusOr<AgentOptions> MakeAgentOptions(const AgentFlags& flags);

}  // namespace rollcall
