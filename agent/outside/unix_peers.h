// SPDX-License-Identifier: Apache-2.0
// Asks the kernel which Unix sockets are connected with which (sock_diag(7)).
#pragma once

#include <cstdint>
#include <unordered_map>

namespace rollcall {

// By a socket's inode: the inode of the other end; of a connection not yet accepted,
// that of the socket that listens.
using UnixPeers = std::unordered_map<uint64_t, uint64_t>;

// Reads the peers of sockets in this process's network namespace. Leaves out what the kernel has
// not answered by the deadline (of the monotonic clock).
UnixPeers ReadUnixPeers(int64_t deadline_ns);

}  // namespace rollcall
