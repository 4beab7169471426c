// SPDX-License-Identifier: Apache-2.0
// The largest gRPC message that the daemon, the agents and the command line accept, in bytes. The
// default of gRPC, 4 MiB, is too small for the stacks of a large incident.
#pragma once

namespace rollcall {

inline constexpr int kMaxMessageBytes = 64 << 20;

}  // namespace rollcall
