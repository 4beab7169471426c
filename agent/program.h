// SPDX-License-Identifier: Apache-2.0
// rollcall-agent: wiring, signals, and the answers to systemd.
#pragma once

namespace rollcall {

// rollcall-agent from its command line to its end. Returns the exit code.
int RunAgent(int argc, char** argv);

}  // namespace rollcall
