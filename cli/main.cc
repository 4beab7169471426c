// SPDX-License-Identifier: Apache-2.0
// rollcall: the command line. Called as rollcall-probe, it is that program.
#include "agent/host_facts/probe_command.h"
#include "base/base_name.h"
#include "base/name_service.h"
#include "base/threads.h"
#include "cli/commands.h"

int main(int argc, char** argv) {
  if (argc > 0 && rollcall::BaseName(argv[0]) == rollcall::kProbeProgram)
    return rollcall::ProbeCommand(argc, argv);
  rollcall::UseBuiltInNameServices();
  return rollcall::LeaveProcess(rollcall::Main(argc, argv));
}
