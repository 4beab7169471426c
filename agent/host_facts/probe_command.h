// SPDX-License-Identifier: Apache-2.0
// rollcall-probe: looks at one part of this host and prints what it finds, a line for each fact
// (fact.h). The agent starts one process for each probe, because a probe may never return. As
// "rollcall-probe stacks" it names stacks for the agent instead (stack_work.h).
//
// `rollcall` is this program, too, when it is called so: on a host where nothing is installed, it
// is one file with two names (cli/remote/remote_script.h).
#pragma once

namespace rollcall {

inline constexpr char kProbeProgram[] = "rollcall-probe";

// Runs the program for main(). Returns the exit code.
int ProbeCommand(int argc, char** argv);

}  // namespace rollcall
