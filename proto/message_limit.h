// SPDX-License-Identifier: Apache-2.0
// The largest message that daemon, agents and the command line take, in bytes. gRPC's own default of
// 4 MiB is less than the stacks of one large incident.
#pragma once

namespace rollcall {

inline constexpr int kMaxMessageBytes = 64 << 20;

}  // namespace rollcall
