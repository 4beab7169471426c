// SPDX-License-Identifier: Apache-2.0
#include "daemon/rules/members/alike_communicators.h"

#include <algorithm>

namespace rollcall {

CommunicatorsByName::CommunicatorsByName(const JobState& job) {
  for (const auto& [id, comm] : job.communicators) {
    AlikeCommunicators& alike = kinds_[{comm.name, comm.size}];
    alike.all.push_back(&comm);
    const bool is_complete = comm.members.size() == static_cast<size_t>(comm.size);
    if (is_complete && alike.complete.size() < kMostComplete) alike.complete.push_back(&comm);
  }
}

const AlikeCommunicators& CommunicatorsByName::Alike(const Communicator& comm) const {
  return kinds_.at({comm.name, comm.size});
}

const CommunicatorsByName::Places& CommunicatorsByName::PlacesIn(absl::string_view name) {
  const auto known = places_.find(name);
  if (known != places_.end()) return known->second;
  Places& places = places_[std::string(name)];
  for (auto kind = kinds_.lower_bound({name, INT32_MIN});
       kind != kinds_.end() && kind->first.first == name; ++kind) {
    for (const Communicator* comm : kind->second.all) {
      for (const auto& [rank, member] : comm->members) places[member.process].push_back(comm);
    }
  }
  for (auto& [process, communicators] : places) {
    std::sort(communicators.begin(), communicators.end(),
              [](const Communicator* a, const Communicator* b) { return a->id < b->id; });
  }
  return places;
}

std::optional<int32_t> CommunicatorsByName::FindPeer(absl::string_view name, int32_t process,
                                                     int32_t mine, int32_t other) {
  const Places& places = PlacesIn(name);
  const auto at = places.find(process);
  if (at == places.end()) return std::nullopt;
  for (const Communicator* comm : at->second) {
    const auto me = comm->members.find(mine), peer = comm->members.find(other);
    const bool is_ours = me != comm->members.end() && me->second.process == process;
    if (is_ours && peer != comm->members.end()) return peer->second.process;
  }
  return std::nullopt;
}

}  // namespace rollcall
