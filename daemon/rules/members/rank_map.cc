// SPDX-License-Identifier: Apache-2.0
#include "daemon/rules/members/rank_map.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "daemon/model/progress.h"
#include "daemon/rules/members/pair_names.h"

namespace rollcall {
namespace {

using RankMap = std::map<int32_t, int32_t>;

// The global ranks of the communicator's members, in order.
std::vector<int32_t> TakenRanks(const JobState& job, const Communicator& comm) {
  std::vector<int32_t> taken;
  taken.reserve(comm.members.size());
  for (const auto& [rank, member] : comm.members) {
    taken.push_back(PublicRank(job, member.process, -1));
  }
  std::sort(taken.begin(), taken.end());
  return taken;
}

bool Contains(const std::vector<int32_t>& in_order, int32_t value) {
  return std::binary_search(in_order.begin(), in_order.end(), value);
}

RankMap BySeats(const JobState& job, const Communicator& comm, const RankRanges& ranks) {
  RankMap result;
  for (size_t seat = 0; seat < comm.seats.size(); ++seat) {
    const auto rank = static_cast<int32_t>(seat);
    const int32_t process = comm.seats[seat];
    if (ranks.Contains(rank) && FindProcess(job, process) != nullptr) result[rank] = process;
  }
  return result;
}

// A split lists its members by the ranks of the parent communicator.
RankMap ByParent(const JobState& job, const Communicator& comm, const RankRanges& ranks) {
  RankMap result;
  const auto parent = job.communicators.find(comm.parent);
  if (comm.parent == 0 || parent == job.communicators.end()) return result;
  if (parent->second.size != comm.size) return result;
  for (const auto& [rank, member] : parent->second.members) {
    if (!ranks.Contains(rank)) continue;
    if (FindProcess(job, member.process) != nullptr) result[rank] = member.process;
  }
  return result;
}

// The WORLD_SIZE of most known members; -1 if unknown. Some may have got another one.
int32_t WorldSize(const JobState& job, const Communicator& comm) {
  std::map<int32_t, size_t> members;  // by world size
  auto newest = members.end();        // most members got the same
  for (const auto& [rank, member] : comm.members) {
    const Process* process = FindProcess(job, member.process);
    if (process == nullptr || process->global_rank < 0) continue;
    if (newest == members.end() || newest->first != process->world_size) {
      newest = members.try_emplace(process->world_size).first;
    }
    ++newest->second;
  }
  // Takes the largest of sizes that equally many got.
  const auto most =
      std::max_element(members.begin(), members.end(), [](const auto& a, const auto& b) {
        return std::tie(a.second, a.first) < std::tie(b.second, b.first);
      });
  return most == members.end() ? -1 : most->first;
}

bool RanksAreGlobal(const JobState& job, const Communicator& comm) {
  return std::all_of(comm.members.begin(), comm.members.end(), [&](const auto& entry) {
    return PublicRank(job, entry.second.process, entry.first) == entry.first;
  });
}

// If as many processes remain as ranks are missing, assigns them in rank order.
RankMap Pair(const RankRanges& ranks, const std::vector<int32_t>& processes) {
  RankMap result;
  if (ranks.size() != processes.size()) return result;
  const std::vector<int32_t> in_order = ranks.First(processes.size());
  for (size_t i = 0; i < in_order.size(); ++i) result[in_order[i]] = processes[i];
  return result;
}

// Returns those of `processes` that are not members.
std::vector<int32_t> Outside(const Communicator& comm, const std::vector<int32_t>& processes) {
  std::vector<int32_t> inside;
  for (const auto& [rank, member] : comm.members) inside.push_back(member.process);
  std::sort(inside.begin(), inside.end());
  std::vector<int32_t> outside;
  std::copy_if(processes.begin(), processes.end(), std::back_inserter(outside),
               [&inside](int32_t process) { return !Contains(inside, process); });
  return outside;
}

// Communicators of one kind (for example the pipeline communicators of a job) have the same
// pattern of ranks. A complete communicator of the same kind shows the missing ranks of this
// one: every rank has the same distance to its counterpart.
constexpr size_t kMostSiblings = 64;
constexpr size_t kMostWorlds = 8;  // to search for silent ranks
static_assert(CommunicatorsByName::kMostComplete > kMostSiblings, "with the communicator itself");

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

}  // namespace

const Worlds& RankFinder::worlds() {
  if (!worlds_) {
    worlds_.emplace(job_);
    looked_at_ += job_.processes.size();
  }
  return *worlds_;
}

CommunicatorsByName& RankFinder::communicators() {
  if (!communicators_) {
    communicators_.emplace(job_);
    looked_at_ += job_.communicators.size();
  }
  return *communicators_;
}

const std::vector<int32_t>& RankFinder::WithoutRank() {
  if (!without_rank_) {
    without_rank_.emplace();
    looked_at_ += job_.processes.size();
    for (size_t i = 0; i < job_.processes.size(); ++i) {
      if (job_.processes[i].global_rank < 0) without_rank_->push_back(static_cast<int32_t>(i));
    }
  }
  return *without_rank_;
}

bool RankFinder::IsAnySilent() {
  if (!is_any_silent_) {
    is_any_silent_ = std::any_of(job_.processes.begin(), job_.processes.end(), IsSilent);
  }
  return *is_any_silent_;
}

// Processes that are members of a communicator of the same kind. Each process is in only one.
const RankFinder::Processes& RankFinder::PlacedInKind(const Communicator& comm) {
  const auto [at, is_new] = placed_.try_emplace({comm.name, comm.size});
  if (!is_new || comm.name.empty()) return at->second;
  for (const Communicator* sibling : communicators().Alike(comm).all) {
    for (const auto& [rank, member] : sibling->members) at->second.insert(member.process);
    looked_at_ += sibling->members.size();
  }
  return at->second;
}

// Only a program that invents sizes has many worlds: each would cost a search of all ranks.
RankFinder::Unplaced& RankFinder::UnplacedIn(const Communicator& comm, int32_t world_size) {
  if (searched_worlds_.size() < kMostWorlds) searched_worlds_.insert(world_size);
  const bool is_whole = searched_worlds_.count(world_size) != 0;
  const Unplaced none = {
      is_whole ? worlds().OfSize(world_size) : worlds().ToldSize(world_size), {}, {}, {}};
  return unplaced_.try_emplace({{comm.name, comm.size}, world_size}, none).first->second;
}

bool RankFinder::FindNextUnplaced(const Processes& placed, Unplaced* unplaced) {
  while (const auto next = unplaced->world.Next(&unplaced->at)) {
    ++looked_at_;
    if (placed.count(next->second) != 0) continue;
    const bool is_silent = IsSilent(job_.processes[static_cast<size_t>(next->second)]);
    (is_silent ? unplaced->silent : unplaced->heard).push_back(*next);
    return true;
  }
  return false;
}

// Whether a rank without a place, and not of `taken`, is not silent.
bool RankFinder::IsOneHeard(const std::vector<int32_t>& taken, const Processes& placed,
                            Unplaced* unplaced) {
  size_t looked = 0;
  do {
    for (; looked < unplaced->heard.size(); ++looked) {
      ++looked_at_;
      if (!Contains(taken, unplaced->heard[looked].first)) return true;
    }
  } while (FindNextUnplaced(placed, unplaced));
  return false;
}

// The remaining processes, where the launcher gives no ranks.
RankFinder::RankMap RankFinder::ByRest(const Communicator& comm, const RankRanges& ranks) {
  const std::vector<int32_t>& all = WithoutRank();
  if (all.size() > comm.members.size() + ranks.size()) return {};  // more remain than are wanted
  looked_at_ += all.size();
  return Pair(ranks, Outside(comm, all));
}

// For a communicator that spans the world: takes the process with the same global rank if
// ranks are global. Otherwise takes the remaining processes, if the whole world is known.
RankFinder::RankMap RankFinder::ByWorld(const Communicator& comm, const RankRanges& ranks,
                                        int32_t world_size) {
  const std::vector<int32_t> taken = TakenRanks(job_, comm);
  const bool ranks_are_global = RanksAreGlobal(job_, comm);
  RankMap result;
  std::vector<int32_t> remaining;
  const WorldRanks world = worlds().OfSize(world_size);
  WorldRanks::Cursor at;
  while (const auto next = world.Next(&at)) {
    ++looked_at_;
    const auto [rank, process] = *next;
    if (Contains(taken, rank)) continue;
    remaining.push_back(process);
    if (ranks_are_global && ranks.Contains(rank)) result[rank] = process;
  }
  if (ranks_are_global) return result;
  if (remaining.size() + comm.members.size() != static_cast<size_t>(world_size)) return {};
  return Pair(ranks, remaining);
}

// A pair is named by the ranks in its process group: those of a communicator of that group, else
// global ranks if the member that is known has that global rank.
RankFinder::RankMap RankFinder::ByPairName(const Communicator& comm, const RankRanges& ranks,
                                           int32_t world_size) {
  const std::optional<PairName> pair = FindPairName(comm.name);
  if (!pair || comm.size != 2 || comm.members.size() != 1) return {};
  const auto& [known_rank, known] = *comm.members.begin();
  if (known_rank < 0 || known_rank > 1 || !ranks.Contains(1 - known_rank)) return {};
  const int32_t mine = pair->ranks[known_rank], other = pair->ranks[1 - known_rank];
  if (const auto peer = communicators().FindPeer(pair->of, known.process, mine, other)) {
    return {{1 - known_rank, *peer}};
  }
  if (PublicRank(job_, known.process, -1) != mine) return {};
  const std::optional<int32_t> peer = worlds().OfSize(world_size).FindProcess(other);
  if (!peer) return {};
  return {{1 - known_rank, *peer}};
}

RankFinder::RankMap RankFinder::BySiblings(const Communicator& comm, const RankRanges& ranks,
                                           int32_t world_size) {
  std::map<int32_t, std::set<int32_t>> expected;  // by rank: global ranks
  size_t searched = 0;
  for (const Communicator* sibling : communicators().Alike(comm).complete) {
    if (sibling->id == comm.id) continue;
    if (++searched > kMostSiblings) break;
    looked_at_ += comm.members.size();
    const std::optional<int32_t> distance = DistanceTo(job_, comm, *sibling);
    if (!distance) continue;
    for (const auto& [rank, there] : sibling->members) {
      if (!ranks.Contains(rank)) continue;
      expected[rank].insert(PublicRank(job_, there.process, -1) + *distance);
    }
  }
  if (expected.empty()) return {};
  const std::vector<int32_t> taken = TakenRanks(job_, comm);
  const WorldRanks world = worlds().OfSize(world_size);
  RankMap result;
  for (const auto& [rank, global] : expected) {
    for (const int32_t one : global) {
      const std::optional<int32_t> who = world.FindProcess(one);
      if (!who || Contains(taken, one)) continue;
      if (!result.emplace(rank, *who).second) return {};  // siblings contradict each other
    }
  }
  return result;
}

// If all candidates are silent, the rank is one of them.
RankFinder::RankMap RankFinder::BySilence(const Communicator& comm, const RankRanges& ranks,
                                          int32_t world_size) {
  if (!IsAnySilent()) return {};
  const std::vector<int32_t> taken = TakenRanks(job_, comm);
  Unplaced& unplaced = UnplacedIn(comm, world_size);
  if (IsOneHeard(taken, PlacedInKind(comm), &unplaced)) return {};
  std::vector<int32_t> silent;
  for (const auto& [rank, process] : unplaced.silent) {
    if (silent.size() == ranks.size()) break;
    ++looked_at_;
    if (!Contains(taken, rank)) silent.push_back(process);
  }
  return Pair(ranks, silent);
}

RankProcesses RankFinder::Find(const Communicator& comm, const std::vector<RankRange>& wanted) {
  const RankRanges ranks(wanted);
  RankProcesses result;
  result.processes = BySeats(job_, comm, ranks);
  if (result.processes.empty()) result.processes = ByParent(job_, comm, ranks);
  if (!result.processes.empty() || ranks.empty()) return result;

  if (comm.has_siblings) return result;  // which process holds which rank is the program's choice
  const int32_t world_size = WorldSize(job_, comm);
  if (world_size < 0) return {ByRest(comm, ranks), true};
  if (world_size == comm.size) {
    result.processes = ByWorld(comm, ranks, world_size);
    if (!result.processes.empty()) return result;
  }
  result.guessed = true;
  result.processes = ByPairName(comm, ranks, world_size);
  if (result.processes.empty()) result.processes = BySiblings(comm, ranks, world_size);
  if (result.processes.empty()) result.processes = BySilence(comm, ranks, world_size);
  return result;
}

std::vector<UnknownMember> SplitByProcess(const std::vector<RankRange>& ranks,
                                          const std::map<int32_t, int32_t>& processes) {
  std::vector<UnknownMember> all;
  for (const RankRange& range : ranks) {
    int32_t next = range.first;
    for (auto at = processes.lower_bound(range.first);
         at != processes.end() && at->first <= range.last; ++at) {
      if (at->first > next) all.push_back({{next, at->first - 1}, -1});
      all.push_back({{at->first, at->first}, at->second});
      next = at->first + 1;
    }
    if (next <= range.last) all.push_back({{next, range.last}, -1});
  }
  return all;
}

}  // namespace rollcall
