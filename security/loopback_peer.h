// SPDX-License-Identifier: Apache-2.0
// Asks the kernel which user's process is at the other end of a loopback TCP connection.
//
// The kernel reports the user who made the socket. A process that inherits the socket, or that
// changes its user afterwards, speaks with the rights of that user. The answer is of the moment:
// ask while the connection is open.
#pragma once

#include <sys/types.h>

#include <optional>

#include "base/peer_address.h"

namespace rollcall {

// The process that holds the socket at the other end of a loopback connection of this process.
struct LoopbackPeer {
  enum class State {
    kUnknown,  // this system does not report it
    kNobody,   // the process there has not accepted the connection yet, or has closed it
    kKnown,
  };
  State state = State::kUnknown;
  uid_t user = 0;  // if it is known
};

// `there` is the other end, `here` the own one. Both must be right: several users may have the same
// port of the same address, each connected to another address of this host.
LoopbackPeer FindLoopbackPeer(const PeerAddress& there, const PeerAddress& here);

// The user, if it is known. nullopt also if `there` is not loopback, and if the user has no number
// in this user namespace.
std::optional<uid_t> LoopbackPeerUser(const PeerAddress& there, const PeerAddress& here);

// kUnknown for the number that the kernel gives users who have none in this user namespace.
LoopbackPeer KnownUnlessForeign(uid_t user);

}  // namespace rollcall
