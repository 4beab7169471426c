// SPDX-License-Identifier: Apache-2.0
// The program rollcall-probe (probe_command.h).
#include "agent/host_facts/probe_command.h"

int main(int argc, char** argv) { return rollcall::ProbeCommand(argc, argv); }
