// SPDX-License-Identifier: Apache-2.0
// gRPC's own log.
#pragma once

namespace rollcall {

// Switches gRPC's log off, unless GRPC_VERBOSITY is set: gRPC prints a line for each handshake that
// a stranger breaks off. Call it before the first use of gRPC.
void SilenceGrpc();

}  // namespace rollcall
