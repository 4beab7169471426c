// SPDX-License-Identifier: Apache-2.0
// What a transfer of NCCL over the network waits for, as NCCL's ProxyStep events report it. For the
// library, the agent, the rules and the reports.
#pragma once

#include <cstdint>

namespace rollcall {

// The numbers are those in segments and on the wire.
enum class NetworkWait : uint8_t {
  kNone = 0,          // no step is under way
  kSendGpu = 1,       // for the own GPU, which has not produced the data to send
  kSendPeer = 2,      // for the receiver, which has no free buffer
  kSend = 3,          // for the network, which has taken the data to send
  kReceive = 4,       // for data from the peer
  kReceiveFlush = 5,  // for the received data to be visible to the GPU
  kReceiveGpu = 6,    // for the own GPU, which has not taken the received data
};
inline constexpr uint32_t kNetworkWaits = 7;

}  // namespace rollcall
