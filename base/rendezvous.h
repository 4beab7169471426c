// SPDX-License-Identifier: Apache-2.0
// Which of several daemons a job prefers: the winner of a rendezvous hash (highest random weight).
// Agents and daemons compute the same, so that a job usually comes to its owner at once. When a
// daemon leaves, only its own jobs prefer another one.
//
// The values are a contract between releases: an agent and a daemon may differ in their version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rollcall {

// How much a job wants a daemon. The names are those that the daemon uses, "default" where the
// agent has none, and hold no NUL.
inline uint64_t RendezvousWeight(std::string_view address, std::string_view tenant,
                                 std::string_view job) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const std::string_view part : {address, tenant, job}) {
    for (const char c : part) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    hash *= 0x100000001b3;  // a NUL
  }
  // The finalizer of SplitMix64: FNV alone mixes its last bytes too little.
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111eb;
  return hash ^ (hash >> 31);
}

// Index of the daemon that the job prefers. `addresses` has at least one. The daemon that wins does
// not depend on their order.
inline size_t PreferredDaemon(const std::vector<std::string>& addresses, std::string_view tenant,
                              std::string_view job) {
  size_t best = 0;
  uint64_t best_weight = 0;
  for (size_t i = 0; i < addresses.size(); ++i) {
    const uint64_t weight = RendezvousWeight(addresses[i], tenant, job);
    const bool is_tie = i != 0 && weight == best_weight;
    if (i != 0 && !(is_tie ? addresses[i] < addresses[best] : weight > best_weight)) continue;
    best = i;
    best_weight = weight;
  }
  return best;
}

}  // namespace rollcall
