// SPDX-License-Identifier: Apache-2.0
// Counts the connected agents by release. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "daemon/access/agent_name.h"
#include "rollcall/v1/query.pb.h"

namespace rollcall {

class AgentReleases {
 public:
  // An agent's first stream begins, or its last one ends. Both cost little, whatever the number of
  // agents is.
  void Add(const AgentName& agent);
  void Remove(const AgentName& agent);

  // Returns the releases of most hosts, at most kMostReleases, that with most agents first; of each
  // the first kMostHosts hosts by name. The agents of all others are those that this list lacks.
  std::vector<v1::AgentRelease> List() const;

  static constexpr int kMostReleases = 16;
  static constexpr int kMostHosts = 32;

 private:
  using AgentsByHost = std::map<std::string, int>;
  struct Release {
    int agents = 0;
    AgentsByHost hosts;
  };
  std::map<std::string, Release> releases_;
};

// Adds the lists of two daemons. An agent that is connected with both counts twice, as in
// v1::StatusResponse.agents.
void JoinReleases(const google::protobuf::RepeatedPtrField<v1::AgentRelease>& more,
                  google::protobuf::RepeatedPtrField<v1::AgentRelease>* all);

}  // namespace rollcall
