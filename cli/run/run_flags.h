// SPDX-License-Identifier: Apache-2.0
// The flags of `rollcall run`.
#pragma once

#include <memory>
#include <string>

#include "agent/link/daemon_channel.h"
#include "agent/redact_flag.h"
#include "daemon/judging_flags.h"
#include "security/redact.h"

namespace CLI {
class App;
}

namespace rollcall {

struct RunFlags {
  JudgingFlags judging;
  std::string on_hang = "observe";
  std::string report_dir = "./rollcall-reports";
  std::string http = "127.0.0.1:0";
  std::string junit;                                        // empty if there is no file
  DaemonAddress daemon = {"", "", "", "", "", "", "", ""};  // no address: the embedded one
  bool sim = false;
  bool insecure = false;
  std::string host_facts = "on";
  std::string flight_recorder = "on";
  bool gpu_dump = false;
  RedactFlags redact;
  std::shared_ptr<const Redactor> redactor;  // made from `redact`

  bool has_own_daemon() const { return daemon.address.empty(); }
};

void DefineRunFlags(CLI::App* app, RunFlags* flags);

// Prints the environment variables that change what this run does, where the command line does not
// override them: people forget what their shell's start-up files export.
void SayWhatTheEnvironmentSets(const CLI::App& app);

}  // namespace rollcall
