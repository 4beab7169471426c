// SPDX-License-Identifier: Apache-2.0
#include "agent/link/network_samples.h"

#include <algorithm>

#include "agent/segments/tick_clock.h"
#include "base/durations.h"
#include "base/steady_clock.h"

namespace rollcall {

v1::NetworkSample ToProto(const NetworkSnapshot& read, int64_t now_ns) {
  v1::NetworkSample sample;
  sample.set_communicator(read.communicator);
  sample.set_rank(read.rank);
  sample.set_incomplete(!read.is_whole || read.states.size() > kMostNetworkStates);
  for (const NetworkStateSnapshot& from : read.states) {
    if (static_cast<size_t>(sample.states_size()) == kMostNetworkStates) break;
    v1::NetworkSample::State* state = sample.add_states();
    state->set_channel(from.channel);
    state->set_peer(from.peer);
    state->set_sends(from.sends);
    state->set_begun(from.begun);
    state->set_ended(from.ended);
    state->set_wait(static_cast<uint32_t>(from.wait));
    const int64_t waited_ns = from.since_ns == 0 ? 0 : std::max<int64_t>(now_ns - from.since_ns, 0);
    state->set_waited_seconds(static_cast<double>(waited_ns) / kSecond);
  }
  return sample;
}

std::vector<v1::NetworkSample> ReadNetworkSamples(const ServedSegment& segment,
                                                  const std::vector<uint64_t>& network_of) {
  std::vector<v1::NetworkSample> samples;
  const auto reader = segment.reader->Again();
  if (!reader.ok()) return samples;
  HostClock clock;
  clock.Sample();
  for (const NetworkSnapshot& read :
       (*reader)->ReadNetwork(&clock, segment.ahead_ns, &network_of)) {
    samples.push_back(ToProto(read, SteadyNs()));
  }
  return samples;
}

}  // namespace rollcall
