// SPDX-License-Identifier: Apache-2.0
#include "cli/flight_recorder/rooted_lists.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <tuple>

#include "cli/flight_recorder/operations.h"

namespace rollcall {
namespace {

// One rank's part of a gather or scatter.
struct ListedPart {
  int32_t rank = -1;
  DumpedCall* call = nullptr;
  uint64_t count = 0;                           // its own elements
  const std::vector<uint64_t>* list = nullptr;  // of the root, by rank in the group
};

using ListKey = std::tuple<std::string, std::vector<int32_t>, uint64_t>;  // group, members, call
using RootedCalls = std::map<ListKey, std::vector<ListedPart>>;

RootedCalls FindRootedCalls(std::vector<RankedDump>* dumps) {
  RootedCalls calls;
  for (RankedDump& ranked : *dumps) {
    for (DumpedCall& call : ranked.dump.calls) {
      const std::string operation = OperationName(call.name);
      const bool gathers = operation == "gather";
      const auto group = ranked.dump.groups.find(call.group);
      if (!gathers && operation != "scatter") continue;
      if (group == ranked.dump.groups.end() || call.collective_seq == 0) continue;
      const std::vector<int32_t>& members = group->second.ranks;
      const std::vector<uint64_t>& own = gathers ? call.input_counts : call.output_counts;
      const std::vector<uint64_t>& all = gathers ? call.output_counts : call.input_counts;
      ListedPart part = {ranked.rank, &call, std::accumulate(own.begin(), own.end(), uint64_t{0}),
                         nullptr};
      if (all.size() == members.size()) part.list = &all;
      calls[{call.group, members, call.collective_seq}].push_back(part);
    }
  }
  return calls;
}

// Whether the rank has the number that the list has for it.
bool IsInList(const std::vector<int32_t>& members, const std::vector<uint64_t>& list,
              const ListedPart& part) {
  const auto at = std::lower_bound(members.begin(), members.end(), part.rank);
  if (at == members.end() || *at != part.rank) return true;
  return list[static_cast<size_t>(at - members.begin())] == part.count;
}

}  // namespace

std::vector<UnlistedCall> CompareWithRoots(std::vector<RankedDump>* dumps) {
  std::vector<UnlistedCall> unlisted;
  for (auto& [key, parts] : FindRootedCalls(dumps)) {
    const std::vector<int32_t>& members = std::get<1>(key);
    const auto root = std::find_if(parts.begin(), parts.end(),
                                   [](const ListedPart& part) { return part.list != nullptr; });
    const bool are_equal = std::all_of(parts.begin(), parts.end(), [&](const ListedPart& part) {
      return part.count == parts.front().count;
    });
    if (are_equal) continue;
    if (root == parts.end()) {
      unlisted.push_back({std::get<0>(key), members, std::get<2>(key) - 1});
      continue;
    }
    const bool are_right = std::all_of(parts.begin(), parts.end(), [&](const ListedPart& part) {
      return IsInList(members, *root->list, part);
    });
    for (const ListedPart& part : parts) part.call->is_in_list = are_right;
  }
  return unlisted;
}

}  // namespace rollcall
