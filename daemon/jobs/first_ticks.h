// SPDX-License-Identifier: Apache-2.0
// Which connected agents may send their first tick. It has the whole state of a host, so the first
// ticks of a fleet that connects at once would take gigabytes. So many agents have a turn at once;
// the others wait for their welcome.
//
// Pure: time is an argument. One owner, no lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace rollcall {

class FirstTicks {
 public:
  static constexpr size_t kAtOnce = 256;
  // An agent that takes longer for its first tick loses its turn to the next one.
  static constexpr int64_t kTurnNs = 2'000'000'000;

  explicit FirstTicks(size_t at_once = kAtOnce) : at_once_(at_once) {}

  // A stream of this agent has begun.
  void Add(const std::string& id);
  // The agent's first tick is applied, or it could not be welcomed. Ignores others.
  void Done(const std::string& id) { turns_.erase(id); }
  // The agent has no stream any more. A whole fleet may go at once, so this does not search.
  void Gone(const std::string& id);
  // The agents whose turn begins now: the caller welcomes them.
  std::vector<std::string> Next(int64_t now_ns);

 private:
  const size_t at_once_;
  uint64_t last_place_ = 0;
  std::map<uint64_t, std::string> waiting_;           // agent ids, the first one waits longest
  std::map<std::string, std::set<uint64_t>> places_;  // in waiting_, by agent id
  std::map<std::string, int64_t> turns_;              // by agent id, when its turn ends
};

}  // namespace rollcall
