// SPDX-License-Identifier: Apache-2.0
#include "cli/diagnose/ranks.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agent/collector/peers.h"
#include "agent/processes/proc_stat.h"

namespace rollcall {
namespace {

constexpr size_t kMostAncestors = 32;
constexpr char kByMaps[] = "maps", kByArgument[] = "argument", kByConnection[] = "connection";

bool HasMapped(const FoundProcess& found, absl::string_view library) {
  return std::find(found.libraries.begin(), found.libraries.end(), library) !=
         found.libraries.end();
}

class Chooser {
 public:
  Chooser(std::vector<FoundProcess>* processes, pid_t self) : processes_(*processes) {
    for (size_t i = 0; i < processes_.size(); ++i) by_pid_[Pid(i)] = i;
    const auto own = by_pid_.find(self);
    if (own == by_pid_.end()) return;
    who_looks_.insert(own->second);
    for (const size_t ancestor : Ancestors(own->second)) who_looks_.insert(ancestor);
  }

  std::vector<ChosenRank> Choose(const std::vector<pid_t>& pids) {
    ChooseByEnvironment();
    ChooseByMaps();
    ChooseByConnections();
    AddLaunchers();
    if (!pids.empty()) KeepJobsOf(pids);
    ChooseZombies();
    std::sort(chosen_.begin(), chosen_.end(),
              [](const ChosenRank& a, const ChosenRank& b) { return a.at < b.at; });
    return std::move(chosen_);
  }

 private:
  pid_t Pid(size_t i) const { return processes_[i].process.process.pid; }
  bool IsChosen(size_t i) const { return is_chosen_.count(i) != 0; }

  void Add(size_t i, const std::string& found_by) {
    if (is_chosen_.insert(i).second) chosen_.push_back({i, found_by});
  }

  std::vector<size_t> Ancestors(size_t i) const {
    std::vector<size_t> ancestors;
    auto parent = by_pid_.find(processes_[i].process.ppid);
    while (parent != by_pid_.end() && ancestors.size() < kMostAncestors) {
      ancestors.push_back(parent->second);
      parent = by_pid_.find(processes_[parent->second].process.ppid);
    }
    return ancestors;
  }

  // One that has outlived its rank would stand for it.
  static bool IsHelper(const FoundProcess& found) {
    return IsRuntimeHelper(found.command) || absl::StartsWith(found.process.name, "pt_data_");
  }

  void ChooseByEnvironment() {
    std::vector<DiscoveredProcess> all;
    for (const FoundProcess& found : processes_) {
      all.push_back(found.process);
      if (IsHelper(found) || IsDead(found.state)) all.back().rank = {};
    }
    // In a step of Slurm or a pod they have the variables of a rank.
    for (const size_t i : who_looks_) all[i].rank = {};
    MarkMainProcesses(&all);
    for (size_t i = 0; i < all.size(); ++i) {
      processes_[i].process.is_main = all[i].is_main;
      if (all[i].is_main) Add(i, all[i].rank.variable);
    }
  }

  bool MayTalk(size_t i) const {
    const FoundProcess& found = processes_[i];
    if (found.process.rank.coordinates.rank >= 0 || IsDead(found.state)) return false;
    return found.talks || HasMapped(found, "mpi") || HasMapped(found, "nvshmem");
  }

  // The innermost ones: a launcher has such a library, too.
  void ChooseByMaps() {
    std::set<size_t> above;
    std::vector<size_t> talkers;
    for (size_t i = 0; i < processes_.size(); ++i) {
      if (IsChosen(i) || MayTalk(i)) {
        for (const size_t ancestor : Ancestors(i)) above.insert(ancestor);
      }
      if (MayTalk(i)) talkers.push_back(i);
    }
    for (const size_t i : talkers) {
      const std::vector<size_t> ancestors = Ancestors(i);
      const bool is_below = std::any_of(ancestors.begin(), ancestors.end(),
                                        [this](size_t ancestor) { return IsChosen(ancestor); });
      if (!is_below && (above.count(i) == 0 || processes_[i].talks)) Add(i, kByMaps);
    }
  }

  // Ranks that talk with each other.
  void ChooseByConnections() {
    std::vector<Talker> talkers;
    std::vector<ConnectedPair> pairs;
    for (size_t i = 0; i < processes_.size(); ++i) {
      const FoundProcess& found = processes_[i];
      if (found.process.rank.coordinates.rank >= 0) continue;
      talkers.push_back(
          {Pid(i), found.process.ppid, ScriptOf(found.command), found.libraries, IsChosen(i)});
      for (const pid_t pid : found.connected) pairs.emplace_back(Pid(i), pid);
    }
    const auto is_above = [this](pid_t above, pid_t pid) {
      return IsAbove(by_pid_.at(above), by_pid_.at(pid));
    };
    for (const auto& [pid, first] : FindMeshes(talkers, pairs, is_above)) {
      Add(by_pid_.at(pid), kByConnection);
      processes_[by_pid_.at(pid)].marks.push_back({"mesh", absl::StrCat(first), true});
    }
  }

  bool IsAbove(size_t above, size_t i) const {
    const std::vector<size_t> ancestors = Ancestors(i);
    return std::find(ancestors.begin(), ancestors.end(), above) != ancestors.end();
  }

  // The ancestor that has started several ranks, or the shell of each.
  void AddLaunchers() {
    for (const ChosenRank& rank : chosen_) {
      pid_t launcher = processes_[rank.at].process.ppid;
      for (const size_t ancestor : Ancestors(rank.at)) {
        launcher = Pid(ancestor);
        if (processes_[ancestor].process.rank.coordinates.rank !=
            processes_[rank.at].process.rank.coordinates.rank) {
          break;
        }
      }
      processes_[rank.at].marks.push_back({"launcher", absl::StrCat(launcher), true});
    }
  }

  // The rank that the process is, or belongs to, or that it has started.
  std::vector<size_t> RanksOf(size_t i) const {
    std::vector<size_t> ranks;
    if (IsChosen(i)) ranks.push_back(i);
    for (const size_t ancestor : Ancestors(i)) {
      if (IsChosen(ancestor)) ranks.push_back(ancestor);
    }
    if (!ranks.empty()) return ranks;
    for (const ChosenRank& rank : chosen_) {
      const std::vector<size_t> ancestors = Ancestors(rank.at);
      if (std::find(ancestors.begin(), ancestors.end(), i) != ancestors.end()) {
        ranks.push_back(rank.at);
      }
    }
    return ranks;
  }

  void KeepJobsOf(const std::vector<pid_t>& pids) {
    std::set<std::string> keys;
    for (const pid_t pid : pids) {
      const auto at = by_pid_.find(pid);
      if (at == by_pid_.end() || !processes_[at->second].is_readable) continue;
      const std::vector<size_t> ranks = RanksOf(at->second);
      for (const size_t rank : ranks) keys.insert(KeyOf(rank));
      if (!ranks.empty()) continue;
      processes_[at->second].marks.insert(processes_[at->second].marks.begin(),
                                          {kByArgument, "named by the command", true});
      Add(at->second, kByArgument);
      keys.insert(KeyOf(at->second));
    }
    const auto is_other = [&](const ChosenRank& rank) { return keys.count(KeyOf(rank.at)) == 0; };
    chosen_.erase(std::remove_if(chosen_.begin(), chosen_.end(), is_other), chosen_.end());
  }

  std::string KeyOf(size_t i) const { return BestMark(processes_[i]); }

  // A zombie counts beside a rank that lives, with the same parent. The kernel shows no environment
  // of it.
  void ChooseZombies() {
    std::map<pid_t, size_t> parents;
    for (const ChosenRank& rank : chosen_) parents[processes_[rank.at].process.ppid] = rank.at;
    for (size_t i = 0; i < processes_.size(); ++i) {
      const auto sibling = parents.find(processes_[i].process.ppid);
      if (!IsDead(processes_[i].state) || sibling == parents.end()) continue;
      if (processes_[i].process.name != processes_[sibling->second].process.name) continue;
      processes_[i].marks = processes_[sibling->second].marks;
      Add(i, kFoundAsZombie);
    }
  }

  std::vector<FoundProcess>& processes_;
  std::map<pid_t, size_t> by_pid_;
  std::vector<ChosenRank> chosen_;
  std::set<size_t> is_chosen_;
  std::set<size_t> who_looks_;  // this program, and the shells above it
};

}  // namespace

std::string BestMark(const FoundProcess& process) {
  const std::vector<Mark>& marks = process.marks;
  return marks.empty() ? "" : absl::StrCat(marks.front().kind, " ", marks.front().value);
}

std::vector<ChosenRank> ChooseRanks(std::vector<FoundProcess>* processes,
                                    const std::vector<pid_t>& pids, pid_t self) {
  return Chooser(processes, self).Choose(pids);
}

}  // namespace rollcall
