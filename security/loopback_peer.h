// SPDX-License-Identifier: Apache-2.0
// Whose process is at the other end of a loopback TCP connection: the kernel knows.
//
// What the kernel says is the user who made the socket. A process that inherits the socket, or that
// changes its user afterwards, speaks with the rights of that user. The answer is of the moment:
// ask while the connection is open.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "security/peer_address.h"

namespace rollcall {

// The user of the socket that connects `peer` with `local_port` of 127.0.0.1 or ::1, of the peer's own
// address, or of one of `addresses` ("127.0.1.1"), which are those that this process listens on.
// nullopt: unknown, because `peer` is not loopback, the connection is not established, the kernel
// does not answer, or the user has no number in this user namespace.
std::optional<uid_t> LoopbackPeerUser(const PeerAddress& peer, uint16_t local_port,
                                      const std::vector<std::string>& addresses = {});

}  // namespace rollcall
