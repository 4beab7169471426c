// SPDX-License-Identifier: Apache-2.0
#include "cli/flight_recorder/exchanges.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/flight_recorder/operations.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

// One rank's part of an all-to-all.
struct Part {
  int32_t rank = -1;
  DumpedCall* call = nullptr;
  uint64_t sent = 0, received = 0;  // elements
};

// A group by its name and members, and the number of a call in it.
struct Key {
  std::string group;
  std::vector<int32_t> members;
  uint64_t seq = 0;
  bool operator<(const Key& other) const {
    return std::tie(group, members, seq) < std::tie(other.group, other.members, other.seq);
  }
};

using Exchanges = std::map<Key, std::vector<Part>>;

uint64_t Sum(const std::vector<uint64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), uint64_t{0});
}

Exchanges FindExchanges(std::vector<RankedDump>* dumps) {
  Exchanges exchanges;
  for (RankedDump& ranked : *dumps) {
    for (DumpedCall& call : ranked.dump.calls) {
      const auto group = ranked.dump.groups.find(call.group);
      if (call.is_p2p || call.collective_seq == 0 || group == ranked.dump.groups.end()) continue;
      if (!IsAllToAll(call.name)) continue;
      exchanges[{call.group, group->second.ranks, call.collective_seq}].push_back(
          {ranked.rank, &call, Sum(call.input_counts), Sum(call.output_counts)});
    }
  }
  return exchanges;
}

bool IsOdd(const Part& part) { return part.sent != part.received; }

// Gives the calls a number of elements to compare, if one rank alone is odd.
void MarkOdd(const std::vector<Part>& parts) {
  const auto even = std::find_if_not(parts.begin(), parts.end(), IsOdd);
  if (even == parts.end() || std::count_if(parts.begin(), parts.end(), IsOdd) != 1) return;
  const bool alike = std::all_of(parts.begin(), parts.end(), [&](const Part& part) {
    return IsOdd(part) || part.sent == even->sent;
  });
  if (!alike) return;
  for (const Part& part : parts) {
    part.call->exchanged = part.received != even->sent ? part.received : part.sent;
  }
}

std::string InWords(const std::vector<Part>& parts, uint64_t sent, uint64_t received) {
  std::string words =
      absl::StrCat("the ranks together send ", sent, " elements and receive ", received);
  std::vector<int32_t> odd;
  for (const Part& part : parts) {
    if (IsOdd(part)) odd.push_back(part.rank);
  }
  if (odd.size() < parts.size()) {
    absl::StrAppend(&words, "; ", RanksInWords(odd), PluralForm(odd.size(), " does", " do"),
                    " not receive as much as ", PluralForm(odd.size(), "it sends", "they send"));
  }
  return words;
}

}  // namespace

std::vector<UnequalExchange> FindUnequalExchanges(std::vector<RankedDump>* dumps) {
  std::vector<UnequalExchange> unequal;
  for (const auto& [key, parts] : FindExchanges(dumps)) {
    if (parts.size() != key.members.size() || parts.size() < 2) continue;
    uint64_t sent = 0, received = 0;
    for (const Part& part : parts) {
      sent += part.sent;
      received += part.received;
    }
    if (sent == received || sent == 0 || received == 0) continue;
    unequal.push_back({key.group, key.members, key.seq - 1, InWords(parts, sent, received)});
    MarkOdd(parts);
  }
  return unequal;
}

}  // namespace rollcall
