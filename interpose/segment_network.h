// SPDX-License-Identifier: Apache-2.0
// The states of NCCL's transfers over the network, as the segment holds them: for each
// communicator, channel, peer and direction the newest, overwritten in place. A part of the ABI
// (segment.h), for the library and the agent.
//
// A transfer goes in steps. At most kNetworkSteps of an operation are under way at a time, and they
// end in order (NCCL_STEPS; sendProxyProgress() and recvProxyProgress() in NCCL's
// src/transport/net.cc).
#pragma once

#include <cstdint>

#include "interpose/segment.h"

namespace rollcall::segment {

inline constexpr uint32_t kNetworkSteps = 8;

struct NetworkEntry {
  Word key;         // NetworkKey(); 0 if the entry is free
  Word generation;  // CommEntry::init_entered: the block may have had another communicator since
  Word began;       // ticks: the newest operation's first step; 0 if no step has begun
  Word begun;       // steps of that operation that have begun
  Word ended;       // of them, those that have ended
  Word waits;       // byte n % 8: the NetworkWait of step n; 0 if NCCL has posted nothing for it
  Word changed;     // ticks of the newest change
  Word reserved;
};
static_assert(sizeof(NetworkEntry) == 64);
inline constexpr uint32_t kNetworkChunkEntries = kNetworkChunkBytes / sizeof(NetworkEntry);

// NCCL has one connection for collectives and one for sends and receives, which may be under way at
// once. Each connection has an entry of its own.
struct NetworkTransfer {
  uint32_t comm = 0;     // index of its CommBlock
  uint32_t channel = 0;  // below 256
  int32_t peer = -1;     // rank in the communicator
  bool sends = false;    // to the peer; false: receives from it
  bool is_p2p = false;   // of a send or receive; false: of a collective
};

inline constexpr uint64_t kNetworkUsed = uint64_t{1} << 63;
inline constexpr uint64_t kNetworkSends = uint64_t{1} << 62;
inline constexpr uint64_t kNetworkP2p = uint64_t{1} << 61;
inline constexpr int kNetworkChannelShift = 32, kNetworkCommShift = 40;

constexpr uint64_t NetworkKey(const NetworkTransfer& transfer) {
  return kNetworkUsed | (transfer.sends ? kNetworkSends : 0) | (transfer.is_p2p ? kNetworkP2p : 0) |
         uint64_t{transfer.comm & 0xffff} << kNetworkCommShift |
         uint64_t{transfer.channel & 0xff} << kNetworkChannelShift |
         static_cast<uint32_t>(transfer.peer);
}

constexpr NetworkTransfer NetworkTransferOf(uint64_t key) {
  NetworkTransfer transfer;
  transfer.comm = static_cast<uint32_t>(key >> kNetworkCommShift & 0xffff);
  transfer.channel = static_cast<uint32_t>(key >> kNetworkChannelShift & 0xff);
  transfer.peer = static_cast<int32_t>(key & 0xffffffff);
  transfer.sends = (key & kNetworkSends) != 0;
  transfer.is_p2p = (key & kNetworkP2p) != 0;
  return transfer;
}

// Returns the wait of the step in `waits`.
constexpr uint8_t WaitOfStep(uint64_t waits, uint64_t step) {
  return static_cast<uint8_t>(waits >> step % kNetworkSteps * 8);
}

}  // namespace rollcall::segment
