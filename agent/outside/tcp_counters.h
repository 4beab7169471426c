// SPDX-License-Identifier: Apache-2.0
// Asks the kernel how much a TCP connection has received (sock_diag(7)): a download moves.
#pragma once

#include <cstdint>

#include "agent/outside/tcp_table.h"

namespace rollcall {

// Reads the counter of a connection in this process's network namespace; 0 if unknown.
uint64_t ReadReceivedBytes(const TcpSocket& socket);

}  // namespace rollcall
