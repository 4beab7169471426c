// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/job_view.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/report/incident_proto.h"
#include "daemon/report/public_ranks.h"
#include "daemon/report/rank_state.h"

namespace rollcall {
namespace {

constexpr size_t kMaxMaps = 64;
// Cells of all maps. A job may claim a number of ranks that it does not have: the first map has
// room for them, more maps need processes.
constexpr size_t kMaxCells = size_t{1} << 22;
constexpr size_t kFreeCells = size_t{1} << 18;
constexpr size_t kCellsPerProcess = 64;

int64_t CreatedNs(const Communicator& comm) {
  int64_t created = 0;
  for (const auto& [rank, member] : comm.members) {
    if (member.init_entered_ns != 0 && (created == 0 || member.init_entered_ns < created)) {
      created = member.init_entered_ns;
    }
  }
  return created;
}

// In the order of creation, so that the job's first communicator is the first row.
std::vector<const Communicator*> InOrder(const JobState& job) {
  std::vector<std::pair<int64_t, const Communicator*>> all;
  all.reserve(job.communicators.size());
  for (const auto& [id, comm] : job.communicators) all.emplace_back(CreatedNs(comm), &comm);
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<const Communicator*> ordered;
  ordered.reserve(all.size());
  for (const auto& [created, comm] : all) ordered.push_back(comm);
  return ordered;
}

// Returns "tp" for "tp_0" and "tp_17": names are often numbered.
std::string KindOfName(const std::string& name) {
  const size_t end = name.find_last_not_of("0123456789_-:. ");
  return end == std::string::npos ? name : name.substr(0, end + 1);
}

std::string MapName(const Communicator& comm, int32_t ranks) {
  if (!comm.name.empty()) return KindOfName(comm.name);
  return comm.size == ranks ? "all ranks" : absl::StrCat("unnamed, of ", comm.size, " ranks");
}

class Maps {
 public:
  Maps(const JobState& job, v1::JobView* view)
      : job_(job), ranks_(job), states_(job), view_(view) {}

  void Add(const Communicator& comm) {
    const std::string name = Utf8(MapName(comm, ranks_.count()));
    const uint64_t most = MostEntered(comm);
    v1::RankMap* map = nullptr;
    for (size_t nth = 0; map == nullptr; ++nth) {
      map = Nth(name, comm.size, nth);
      if (map == nullptr) return;
      for (const auto& [rank, member] : comm.members) {
        if (IsTaken(*map, ranks_.FindRank(member.process))) {
          map = nullptr;
          break;
        }
      }
    }
    map->set_communicators(map->communicators() + 1);
    std::string* states = map->mutable_states();
    for (const auto& [rank, member] : comm.members) {
      const int32_t place = ranks_.FindRank(member.process);
      if (place < 0) continue;
      (*states)[static_cast<size_t>(place)] = states_.Of(comm, member, most);
    }
    MarkAbsent(comm, states);
  }

  void AddHosts() {
    for (int32_t rank = 0; rank < ranks_.count(); ++rank) {
      const int32_t process = ranks_.FindProcess(rank);
      const std::string host =
          process < 0 ? "" : Utf8(job_.processes[static_cast<size_t>(process)].host);
      if (view_->hosts().empty() || view_->hosts(view_->hosts_size() - 1).host() != host) {
        v1::HostRun* run = view_->add_hosts();
        run->set_host(host);
        run->set_first_rank(rank);
      }
      v1::HostRun* run = view_->mutable_hosts(view_->hosts_size() - 1);
      run->set_ranks(run->ranks() + 1);
    }
  }

 private:
  static bool IsTaken(const v1::RankMap& map, int32_t rank) {
    return rank >= 0 && map.states()[static_cast<size_t>(rank)] != rank_state::kInNone;
  }

  // Returns the nth map of this kind, and adds it if it is missing. Returns nullptr if there are
  // too many maps.
  v1::RankMap* Nth(const std::string& name, int32_t size, size_t nth) {
    std::vector<int>& known = kinds_[{name, size}];
    if (nth < known.size()) return view_->mutable_maps(known[nth]);
    const auto maps = static_cast<size_t>(view_->maps_size());
    const size_t most = std::min(kMaxCells, kFreeCells + job_.processes.size() * kCellsPerProcess);
    if (maps >= kMaxMaps || (maps + 1) * static_cast<size_t>(ranks_.count()) > most) {
      return nullptr;
    }
    known.push_back(view_->maps_size());
    v1::RankMap* map = view_->add_maps();
    map->set_name(nth == 0 ? name : absl::StrCat(name, ", set ", nth + 1));
    map->set_size(size);
    map->set_states(std::string(static_cast<size_t>(ranks_.count()), rank_state::kInNone));
    return map;
  }

  // Marks missing ranks of a communicator of all ranks.
  void MarkAbsent(const Communicator& comm, std::string* states) const {
    if (comm.size != ranks_.count()) return;
    for (char& state : *states) {
      if (state == rank_state::kInNone) state = rank_state::kNotSeen;
    }
  }

  const JobState& job_;
  const PublicRanks ranks_;
  const RankStates states_;
  v1::JobView* const view_;
  std::map<std::pair<std::string, int32_t>, std::vector<int>> kinds_;
};

}  // namespace

void KeepWorstCommunicators(int most, v1::JobStatus* status) {
  auto* all = status->mutable_communicators();
  status->set_communicators_total(all->size());
  std::stable_sort(all->begin(), all->end(), [](const auto& a, const auto& b) {
    const auto weight = [](const v1::CommunicatorStatus& comm) {
      return std::make_tuple(comm.waited_seconds(), comm.waiting(),
                             comm.position_max() - comm.position_min(), comm.size());
    };
    return weight(a) > weight(b);
  });
  if (all->size() > most) all->DeleteSubrange(most, all->size() - most);
}

void FillRankMaps(const JobState& job, v1::JobView* view) {
  Maps maps(job, view);
  for (const Communicator* comm : InOrder(job)) maps.Add(*comm);
  maps.AddHosts();
}

}  // namespace rollcall
