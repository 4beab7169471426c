// SPDX-License-Identifier: Apache-2.0
// What queries over all history ask about an incident: which host, GPU, user, call site and so on
// it had, and how much it cost. Pure.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rollcall/v1/incident.pb.h"

namespace rollcall {

inline constexpr char kLabelKind[] = "label:";  // and the label's name: "label:switch"

struct IncidentFacts {
  // Kind and value: {"host", "node-17"}, {"call_site", "train.py:212 in validate"}. At most
  // kMostValuesOfKind of each kind. Of an incident that does not count: {"", ""} alone.
  std::set<std::pair<std::string, std::string>> values;
  std::string tenant, cause;
  bool is_certain = false;
  // Ranks of the job times the time from the first wait to the end of the hang, in milliseconds. Of
  // an open incident to its confirmation.
  int64_t lost_rank_ms = 0;
};

inline constexpr int kMostValuesOfKind = 64;

// Ranks of the job times the time from the first wait up to this one, in milliseconds.
int64_t LostRankMs(const v1::Incident& incident, int64_t until_ns);

// Only incidents that were confirmed count.
IncidentFacts FactsOf(const v1::Incident& incident);

// The kinds without those of labels, in the order in which people read them.
const std::vector<std::string>& FactKinds();
// Whether a query may ask for this kind.
bool IsFactKind(const std::string& kind);

// "Megatron-LM": by the Python files on the stacks. Empty if unknown.
std::string FrameworkOf(const v1::Incident& incident);

}  // namespace rollcall
