// SPDX-License-Identifier: Apache-2.0
// rollcalld: wiring, signals, and the answers to systemd.
#pragma once

namespace rollcall {

// rollcalld from its command line to its end. Returns the exit code.
int RunDaemon(int argc, char** argv);

}  // namespace rollcall
