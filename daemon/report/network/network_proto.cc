// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/network/network_proto.h"

#include <algorithm>

#include "base/durations.h"
#include "daemon/words/network_words.h"

namespace rollcall {
namespace {

v1::NetworkWalk::Hop ToProto(const NetworkHop& hop, int64_t now_ns) {
  v1::NetworkWalk::Hop result;
  result.set_rank(hop.rank);
  result.set_peer(hop.peer);
  result.set_channel(hop.channel);
  result.set_wait(NetworkWaitName(hop.wait));
  const int64_t waited_ns = hop.since_ns == 0 ? 0 : std::max<int64_t>(now_ns - hop.since_ns, 0);
  result.set_waited_seconds(static_cast<double>(waited_ns / (kSecond / 1000)) / 1000.0);
  return result;
}

}  // namespace

const char* NetworkWaitName(NetworkWait wait) {
  switch (wait) {
    case NetworkWait::kSendGpu:
      return "send_gpu";
    case NetworkWait::kSendPeer:
      return "send_peer";
    case NetworkWait::kSend:
      return "send";
    case NetworkWait::kReceive:
      return "receive";
    case NetworkWait::kReceiveFlush:
      return "receive_flush";
    case NetworkWait::kReceiveGpu:
      return "receive_gpu";
    case NetworkWait::kNone:
      break;
  }
  return "";
}

v1::NetworkWalk ToProto(const NetworkWalk& walk, int64_t now_ns) {
  v1::NetworkWalk result;
  result.set_fault(NetworkFaultName(walk.fault));
  result.set_rank(walk.culprit);
  result.set_peer(walk.peer);
  result.set_channels(walk.channels);
  result.set_agreeing(walk.agreeing);
  result.set_hops_left_out(walk.left_out);
  for (const NetworkHop& hop : walk.hops) *result.add_hops() = ToProto(hop, now_ns);
  return result;
}

}  // namespace rollcall
