// SPDX-License-Identifier: Apache-2.0
// Asks the kernel which Unix socket is at the other end of another (sock_diag(7)).
#pragma once

#include <cstdint>

namespace rollcall {

// The inode of the other end; of a connection that nobody has accepted yet, that of the socket that
// listens. 0: there is none, or the kernel does not say. Of sockets in this process's network
// namespace only. Takes a moment, and blocks for a second at most.
uint64_t FindUnixPeer(uint64_t inode);

}  // namespace rollcall
