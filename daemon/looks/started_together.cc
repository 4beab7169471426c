// SPDX-License-Identifier: Apache-2.0
#include "daemon/looks/started_together.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

using Looks = std::vector<v1::HostLook>;
using Members = std::vector<LookedAt>;
using Ranks = std::set<int32_t>;

// What one launcher has started on its host: each rank once.
struct Part {
  Members members;
  Ranks ranks;
  uint64_t newest = 0;  // start of its newest process
};

uint64_t StartOf(const Looks& looks, const LookedAt& member) {
  return ProcessAt(looks, member).process().start_time();
}

std::string LauncherOf(const v1::ProcessLook& process) {
  for (const v1::JobMark& mark : process.marks()) {
    if (mark.kind() == "launcher") return mark.value();
  }
  return "";
}

// A rank that the launcher has started twice is in two parts, in the first one with its newest
// process.
std::vector<Part> PartsOfLauncher(const Looks& looks, Members members) {
  std::stable_sort(members.begin(), members.end(), [&](const LookedAt& a, const LookedAt& b) {
    return StartOf(looks, a) > StartOf(looks, b);
  });
  std::vector<Part> parts(1);
  std::map<int32_t, size_t> times;
  for (const LookedAt& member : members) {
    const int32_t rank = LivingRank(ProcessAt(looks, member));
    const size_t at = rank < 0 ? 0 : times[rank]++;
    if (at == parts.size()) parts.emplace_back();
    parts[at].members.push_back(member);
    parts[at].newest = std::max(parts[at].newest, StartOf(looks, member));
    if (rank >= 0) parts[at].ranks.insert(rank);
  }
  return parts;
}

// Puts the parts that make the best first run first. Starts are of the clock of one host.
std::vector<Part> PartsOf(const Looks& looks, const Members& members) {
  std::map<std::pair<size_t, std::string>, size_t> launchers;
  std::vector<Members> by_launcher;
  for (const LookedAt& member : members) {
    const auto [at, is_new] = launchers.emplace(
        std::make_pair(member.look, LauncherOf(ProcessAt(looks, member))), by_launcher.size());
    if (is_new) by_launcher.emplace_back();
    by_launcher[at->second].push_back(member);
  }
  std::vector<Part> parts;
  for (const Members& of_launcher : by_launcher) {
    for (Part& part : PartsOfLauncher(looks, of_launcher)) parts.push_back(std::move(part));
  }
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return std::make_tuple(b.ranks.size(), a.members.front().look, b.newest) <
           std::make_tuple(a.ranks.size(), b.members.front().look, a.newest);
  });
  return parts;
}

bool HaveNoneInCommon(const Ranks& a, const Ranks& b) {
  return std::none_of(a.begin(), a.end(), [&b](int32_t rank) { return b.count(rank) != 0; });
}

Ranks RanksOf(const Looks& looks, const Members& members) {
  Ranks ranks;
  for (const LookedAt& member : members) {
    const int32_t rank = LivingRank(ProcessAt(looks, member));
    if (rank >= 0) ranks.insert(rank);
  }
  return ranks;
}

// 0 if no process reports it.
size_t WorldOf(const Looks& looks, const Members& members) {
  int32_t world = 0;
  for (const LookedAt& member : members) {
    world = std::max(world, ProcessAt(looks, member).process().identity().world_size());
  }
  return static_cast<size_t>(world);
}

// The start of the newest process, by host.
std::map<size_t, uint64_t> NewestByHost(const Looks& looks, const Members& members) {
  std::map<size_t, uint64_t> newest;
  for (const LookedAt& member : members) {
    newest[member.look] = std::max(newest[member.look], StartOf(looks, member));
  }
  return newest;
}

// On each host that both are on, and there is one: clocks of two hosts show nothing.
bool IsOlder(const RunFacts& run, const RunFacts& other) {
  bool is_older = false;
  for (const auto& [look, newest] : run.newest) {
    const auto at = other.newest.find(look);
    if (at == other.newest.end()) continue;
    if (newest >= at->second) return false;
    is_older = true;
  }
  return is_older;
}

}  // namespace

int32_t LivingRank(const v1::ProcessLook& process) {
  if (process.found_by() == kFoundAsZombie) return -1;
  return process.process().identity().global_rank();
}

std::vector<Members> TellRunsApart(const Looks& looks, const Members& members) {
  std::vector<Members> runs;
  std::vector<Ranks> ranks;
  for (const Part& part : PartsOf(looks, members)) {
    const auto fits = std::find_if(ranks.begin(), ranks.end(), [&part](const Ranks& taken) {
      return HaveNoneInCommon(part.ranks, taken);
    });
    const size_t at = std::min(static_cast<size_t>(fits - ranks.begin()), kMostRuns - 1);
    if (at == runs.size()) {
      runs.emplace_back();
      ranks.emplace_back();
    }
    runs[at].insert(runs[at].end(), part.members.begin(), part.members.end());
    ranks[at].insert(part.ranks.begin(), part.ranks.end());
  }
  for (Members& run : runs) {
    std::sort(run.begin(), run.end(), [](const LookedAt& a, const LookedAt& b) {
      return std::make_pair(a.look, a.process) < std::make_pair(b.look, b.process);
    });
  }
  return runs;
}

RunFacts FactsOf(const Looks& looks, const Members& run) {
  return {RanksOf(looks, run).size(), WorldOf(looks, run), NewestByHost(looks, run)};
}

bool IsLeftBehind(const RunFacts& run, const RunFacts& whole) {
  return run.ranks < run.world && run.ranks < whole.ranks && IsOlder(run, whole);
}

}  // namespace rollcall
