// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/rules/rank_map.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "daemon/model/progress.h"

namespace rollcall {
namespace {

using RankMap = std::map<int32_t, int32_t>;

std::set<int32_t> MemberProcesses(const Communicator& comm) {
  std::set<int32_t> processes;
  for (const auto& [rank, member] : comm.members) processes.insert(member.process);
  return processes;
}

RankMap BySeats(const JobState& job, const Communicator& comm, const std::vector<int32_t>& ranks) {
  RankMap result;
  for (const int32_t rank : ranks) {
    if (rank < 0 || static_cast<size_t>(rank) >= comm.seats.size()) continue;
    const int32_t process = comm.seats[static_cast<size_t>(rank)];
    if (FindProcess(job, process) != nullptr) result[rank] = process;
  }
  return result;
}

// A split lists its members by the ranks of the parent communicator.
RankMap ByParent(const JobState& job, const Communicator& comm, const std::vector<int32_t>& ranks) {
  RankMap result;
  const auto parent = job.communicators.find(comm.parent);
  if (comm.parent == 0 || parent == job.communicators.end()) return result;
  if (parent->second.size != comm.size) return result;
  for (const int32_t rank : ranks) {
    const auto member = parent->second.members.find(rank);
    if (member == parent->second.members.end()) continue;
    const int32_t process = member->second.process;
    if (FindProcess(job, process) != nullptr) result[rank] = process;
  }
  return result;
}

// Launchers, wrappers and data-loader workers inherit their rank's environment
// and the library: of several processes with one rank the one that uses NCCL is
// meant, else the one that lives, else the first.
bool IsBetter(const Process& a, const Process& b) {
  const auto key = [](const Process& p) {
    return std::make_tuple(!p.has_segment, HasEnded(p), p.start_time, p.pid);
  };
  return key(a) < key(b);
}

// Processes outside `comm` with the world that its members see, by global rank.
// `wanted`: only these ranks; a large job has many communicators to ask for.
RankMap CandidatesByGlobalRank(const JobState& job, const Communicator& comm, int32_t world_size,
                               const std::set<int32_t>* wanted = nullptr) {
  const std::set<int32_t> inside = MemberProcesses(comm);
  std::set<int32_t> taken;
  for (const int32_t process : inside) taken.insert(PublicRank(job, process, -1));
  RankMap result;
  for (size_t i = 0; i < job.processes.size(); ++i) {
    const Process& process = job.processes[i];
    const auto index = static_cast<int32_t>(i);
    if (process.global_rank < 0 || process.world_size != world_size) continue;
    if (wanted != nullptr && wanted->count(process.global_rank) == 0) continue;
    if (inside.count(index) != 0 || taken.count(process.global_rank) != 0) continue;
    const auto [it, inserted] = result.emplace(process.global_rank, index);
    if (!inserted && IsBetter(process, job.processes[it->second])) it->second = index;
  }
  return result;
}

std::vector<int32_t> CandidatesWithoutRank(const JobState& job, const Communicator& comm) {
  const std::set<int32_t> inside = MemberProcesses(comm);
  std::vector<int32_t> result;
  for (size_t i = 0; i < job.processes.size(); ++i) {
    const auto index = static_cast<int32_t>(i);
    if (job.processes[i].global_rank < 0 && inside.count(index) == 0) result.push_back(index);
  }
  return result;
}

// The world size of the known members; -1: unknown.
int32_t WorldSize(const JobState& job, const Communicator& comm) {
  int32_t world_size = -1;
  for (const auto& [rank, member] : comm.members) {
    const Process* process = FindProcess(job, member.process);
    if (process != nullptr && process->global_rank >= 0) {
      world_size = std::max(world_size, process->world_size);
    }
  }
  return world_size;
}

bool RanksAreGlobal(const JobState& job, const Communicator& comm) {
  return std::all_of(comm.members.begin(), comm.members.end(), [&](const auto& entry) {
    return PublicRank(job, entry.second.process, entry.first) == entry.first;
  });
}

// As many processes remain as ranks are missing: assigns them in rank order.
RankMap Pair(const std::vector<int32_t>& ranks, const std::vector<int32_t>& processes) {
  RankMap result;
  if (ranks.size() != processes.size()) return result;
  for (size_t i = 0; i < ranks.size(); ++i) result[ranks[i]] = processes[i];
  return result;
}

// Of a communicator that spans the world: by number where ranks are global, else
// by what is left over, if all of the world are known.
RankMap OfTheWorld(const JobState& job, const Communicator& comm, const std::vector<int32_t>& ranks,
                   int32_t world_size) {
  const RankMap candidates = CandidatesByGlobalRank(job, comm, world_size);
  if (RanksAreGlobal(job, comm)) {
    RankMap result;
    for (const int32_t rank : ranks) {
      const auto it = candidates.find(rank);
      if (it != candidates.end()) result[rank] = it->second;
    }
    return result;
  }
  if (candidates.size() + comm.members.size() != static_cast<size_t>(world_size)) return {};
  std::vector<int32_t> processes;
  for (const auto& [rank, process] : candidates) processes.push_back(process);
  return Pair(ranks, processes);
}

// Communicators of one kind (the pipeline groups of a job, say) hold their ranks
// in one pattern. A complete communicator of the same kind shows the missing ranks of
// this one: each rank has the same distance as the known ones.
constexpr size_t kMostSiblings = 64;

std::optional<int32_t> DistanceTo(const JobState& job, const Communicator& comm,
                                  const Communicator& sibling) {
  std::optional<int32_t> distance;
  for (const auto& [rank, member] : comm.members) {
    const auto other = sibling.members.find(rank);
    if (other == sibling.members.end()) return std::nullopt;
    const int32_t here = PublicRank(job, member.process, -1);
    const int32_t there = PublicRank(job, other->second.process, -1);
    if (here < 0 || there < 0 || (distance && *distance != here - there)) return std::nullopt;
    distance = here - there;
  }
  return distance;
}

RankMap BySiblings(const JobState& job, const Communicator& comm, const std::vector<int32_t>& ranks,
                   int32_t world_size) {
  std::map<int32_t, std::set<int32_t>> expected;  // by rank: global ranks
  std::set<int32_t> wanted;
  size_t looked_at = 0;
  for (const auto& [id, sibling] : job.communicators) {
    const bool alike = id != comm.id && sibling.size == comm.size && sibling.name == comm.name &&
                       sibling.members.size() == static_cast<size_t>(sibling.size);
    if (!alike) continue;
    if (++looked_at > kMostSiblings) break;
    const std::optional<int32_t> distance = DistanceTo(job, comm, sibling);
    if (!distance) continue;
    for (const int32_t rank : ranks) {
      const auto there = sibling.members.find(rank);
      if (there == sibling.members.end()) continue;  // damaged: a rank beyond its size is in it
      const int32_t here = PublicRank(job, there->second.process, -1) + *distance;
      expected[rank].insert(here);
      wanted.insert(here);
    }
  }
  if (wanted.empty()) return {};
  const RankMap candidates = CandidatesByGlobalRank(job, comm, world_size, &wanted);
  RankMap result;
  for (const auto& [rank, global] : expected) {
    for (const int32_t one : global) {
      const auto who = candidates.find(one);
      if (who == candidates.end()) continue;
      if (!result.emplace(rank, who->second).second) return {};  // the pattern is not one
    }
  }
  return result;
}

bool IsSilent(const Process& process) { return process.liveness == Liveness::kSilent; }

// Processes with a place in a communicator of the same kind: it has one for each.
std::set<int32_t> PlacedElsewhere(const JobState& job, const Communicator& comm) {
  std::set<int32_t> placed;
  for (const auto& [id, sibling] : job.communicators) {
    if (comm.name.empty() || sibling.name != comm.name || sibling.size != comm.size) continue;
    const std::set<int32_t> members = MemberProcesses(sibling);
    placed.insert(members.begin(), members.end());
  }
  return placed;
}

// All candidates are silent: the rank is one of them.
RankMap BySilence(const JobState& job, const Communicator& comm, const std::vector<int32_t>& ranks,
                  int32_t world_size) {
  if (std::none_of(job.processes.begin(), job.processes.end(), IsSilent)) return {};
  const RankMap candidates = CandidatesByGlobalRank(job, comm, world_size);
  const std::set<int32_t> placed = PlacedElsewhere(job, comm);
  std::vector<int32_t> silent;
  for (const auto& [rank, process] : candidates) {
    if (placed.count(process) != 0) continue;
    if (!IsSilent(job.processes[static_cast<size_t>(process)])) return {};
    silent.push_back(process);
  }
  RankMap result;
  if (silent.size() < ranks.size()) return result;
  for (size_t i = 0; i < ranks.size(); ++i) result[ranks[i]] = silent[i];
  return result;
}

}  // namespace

RankProcesses ProcessesOfRanks(const JobState& job, const Communicator& comm,
                               const std::vector<int32_t>& ranks) {
  RankProcesses result;
  result.processes = BySeats(job, comm, ranks);
  if (result.processes.empty()) result.processes = ByParent(job, comm, ranks);
  if (!result.processes.empty() || ranks.empty()) return result;

  const int32_t world_size = WorldSize(job, comm);
  if (world_size < 0) return {Pair(ranks, CandidatesWithoutRank(job, comm)), true};
  if (world_size == comm.size) {
    result.processes = OfTheWorld(job, comm, ranks, world_size);
    if (!result.processes.empty()) return result;
  }
  result.guessed = true;
  result.processes = BySiblings(job, comm, ranks, world_size);
  if (result.processes.empty()) result.processes = BySilence(job, comm, ranks, world_size);
  return result;
}

}  // namespace rollcall
