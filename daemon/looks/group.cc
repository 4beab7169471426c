// SPDX-License-Identifier: Apache-2.0
#include "daemon/looks/group.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/looks/started_together.h"

namespace rollcall {
namespace {

using Looks = std::vector<v1::HostLook>;
using Members = std::vector<LookedAt>;

// The key is its user and its best mark.
std::string KeyOf(const Looks& looks, const LookedAt& member) {
  const v1::ProcessLook& process = ProcessAt(looks, member);
  if (process.marks().empty()) return "";
  const v1::JobMark& mark = process.marks(0);
  return absl::StrCat(process.process().identity().uid(), "\n", mark.kind(), "\n", mark.value(),
                      "\n", mark.of_host() ? looks[member.look].host() : "");
}

std::vector<Members> SplitByKey(const Looks& looks) {
  std::map<std::string, size_t> at;
  std::vector<Members> groups;
  for (size_t look = 0; look < looks.size(); ++look) {
    for (int i = 0; i < looks[look].processes_size(); ++i) {
      const auto [group, is_new] = at.emplace(KeyOf(looks, {look, i}), groups.size());
      if (is_new) groups.emplace_back();
      groups[group->second].push_back({look, i});
    }
  }
  return groups;
}

bool HasTwins(const Looks& looks, const Members& members) {
  std::set<int32_t> ranks;
  return std::any_of(members.begin(), members.end(), [&](const LookedAt& member) {
    const int32_t rank = LivingRank(ProcessAt(looks, member));
    return rank >= 0 && !ranks.insert(rank).second;
  });
}

// The jobs of processes that share a key, without names.
std::vector<LookGroup> JobsAmong(const Looks& looks, const Members& members) {
  if (!HasTwins(looks, members)) return {{"", members, {}}};
  std::vector<LookGroup> jobs;
  RunFacts whole;
  for (const Members& run : TellRunsApart(looks, members)) {
    const RunFacts facts = FactsOf(looks, run);
    if (jobs.empty()) whole = facts;
    if (!jobs.empty() && IsLeftBehind(facts, whole)) {
      Members& left = jobs.front().left_behind;
      left.insert(left.end(), run.begin(), run.end());
    } else {
      jobs.push_back({"", run, {}});
    }
  }
  return jobs;
}

// The name in the environment, else the script's; of the lowest rank that has one.
std::string NameOf(const Looks& looks, const Members& members) {
  std::string name, script = "job";
  int32_t lowest = INT32_MAX;
  for (const LookedAt& member : members) {
    const v1::ProcessLook& process = ProcessAt(looks, member);
    const v1::Identity& identity = process.process().identity();
    if (name.empty()) name = identity.job();
    if (process.script().empty() || identity.global_rank() >= lowest) continue;
    lowest = identity.global_rank();
    script = process.script();
  }
  return name.empty() ? script : name;
}

// Gives each job another name: a user may name one "train-2", which the second "train" would have.
class Names {
 public:
  std::string Take(const std::string& wanted) {
    int& number = numbers_[wanted];
    while (true) {
      ++number;
      std::string name = number == 1 ? wanted : absl::StrCat(wanted, "-", number);
      if (taken_.insert(name).second) return name;
    }
  }

 private:
  std::map<std::string, int> numbers_;  // the last one tried, by the name that was wanted
  std::set<std::string> taken_;
};

}  // namespace

std::vector<LookGroup> GroupLooks(const Looks& looks) {
  std::vector<LookGroup> groups;
  Names names;
  for (const Members& members : SplitByKey(looks)) {
    for (LookGroup& job : JobsAmong(looks, members)) {
      job.name = names.Take(NameOf(looks, job.members));
      groups.push_back(std::move(job));
    }
  }
  return groups;
}

bool IsOfOneHost(const Looks& looks, const LookGroup& group) {
  return std::all_of(group.members.begin(), group.members.end(), [&](const LookedAt& member) {
    const v1::ProcessLook& process = ProcessAt(looks, member);
    const int32_t world = process.process().identity().world_size();
    const bool is_whole = world > 0 && process.local_world_size() == world;
    const bool is_marked = process.marks_size() > 0 && process.marks(0).of_host();
    const bool is_zombie = process.found_by() == kFoundAsZombie;  // has the marks of a living one
    return member.look == group.members.front().look && (is_whole || is_marked || is_zombie);
  });
}

}  // namespace rollcall
