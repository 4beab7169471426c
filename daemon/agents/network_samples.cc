// SPDX-License-Identifier: Apache-2.0
#include "daemon/agents/network_samples.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/durations.h"
#include "base/whole_numbers.h"
#include "daemon/agents/stack_limits.h"
#include "daemon/model/client_limits.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {
namespace {

// Returns 0 if it is unknown. A time that is not a number, or that cannot be, is not known.
int64_t SinceNs(double waited_seconds, int64_t read_ns) {
  const double most = static_cast<double>(limits::kOldestNs) / kSecond;
  if (!(waited_seconds > 0 && waited_seconds <= most)) return 0;
  return std::max<int64_t>(read_ns - NsOfSeconds(waited_seconds), 0);
}

// A wait unknown to this daemon must not look like a step for which nothing is posted.
bool IsPossible(const v1::NetworkSample::State& state) {
  return state.channel() >= 0 && state.peer() >= 0 && state.ended() <= state.begun() &&
         state.wait() < kNetworkWaits;
}

NetworkState ToState(const v1::NetworkSample::State& from, int64_t read_ns) {
  NetworkState state;
  state.channel = from.channel();
  state.peer = from.peer();
  state.sends = from.sends();
  state.begun = from.begun();
  state.ended = from.ended();
  state.wait = static_cast<NetworkWait>(from.wait());
  state.since_ns = SinceNs(from.waited_seconds(), read_ns);
  return state;
}

}  // namespace

std::vector<NetworkSample> ReadNetworkSamples(const v1::ProcessStack& stack,
                                              const std::vector<uint64_t>& asked, int32_t process,
                                              int64_t read_ns) {
  std::vector<NetworkSample> samples;
  std::set<std::pair<uint64_t, int32_t>> known;
  size_t states = 0;
  for (const v1::NetworkSample& from : stack.network()) {
    if (samples.size() == static_cast<size_t>(limits::kNetworks)) break;
    const bool is_asked = std::find(asked.begin(), asked.end(), from.communicator()) != asked.end();
    if (!is_asked || from.rank() < 0) continue;
    if (!known.emplace(from.communicator(), from.rank()).second) continue;
    NetworkSample& sample = samples.emplace_back();
    sample.communicator = from.communicator();
    sample.rank = from.rank();
    sample.process = process;
    sample.is_whole = !from.incomplete();
    for (const v1::NetworkSample::State& state : from.states()) {
      const bool has_room = states < static_cast<size_t>(limits::kNetworkStatesOfStack) &&
                            sample.states.size() < static_cast<size_t>(limits::kNetworkStates);
      if (!has_room || !IsPossible(state)) {
        sample.is_whole = false;
        continue;
      }
      sample.states.push_back(ToState(state, read_ns));
      ++states;
    }
  }
  return samples;
}

}  // namespace rollcall
