// SPDX-License-Identifier: Apache-2.0
#include "cli/diagnose/group.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/diagnose/ranks.h"

namespace rollcall {
namespace {

using Looks = std::vector<v1::HostLook>;
using Members = std::vector<LookedAt>;

const v1::ProcessLook& At(const Looks& looks, const LookedAt& member) {
  return looks[member.look].processes(member.process);
}

std::string KeyOfMark(const Looks& looks, const LookedAt& member, const v1::JobMark& mark) {
  const std::string host = mark.of_host() ? looks[member.look].host() : "";
  return absl::StrCat(At(looks, member).process().identity().uid(), "\n", mark.kind(), "\n",
                      mark.value(), "\n", host);
}

// By its best mark.
std::string KeyOf(const Looks& looks, const LookedAt& member) {
  const auto& marks = At(looks, member).marks();
  return marks.empty() ? "" : KeyOfMark(looks, member, marks[0]);
}

// By who has started it, and by its host.
std::string KeyOfLauncher(const Looks& looks, const LookedAt& member) {
  for (const v1::JobMark& mark : At(looks, member).marks()) {
    if (mark.kind() == "launcher") return KeyOfMark(looks, member, mark);
  }
  return "";
}

std::vector<Members> Split(const Members& all, const std::function<std::string(LookedAt)>& key) {
  std::map<std::string, size_t> at;
  std::vector<Members> groups;
  for (const LookedAt& member : all) {
    const auto [group, is_new] = at.emplace(key(member), groups.size());
    if (is_new) groups.emplace_back();
    groups[group->second].push_back(member);
  }
  return groups;
}

bool HasTwins(const Looks& looks, const Members& members) {
  std::set<std::pair<size_t, int32_t>> ranks;
  return std::any_of(members.begin(), members.end(), [&](const LookedAt& member) {
    const v1::ProcessLook& process = At(looks, member);
    const int32_t rank = process.process().identity().global_rank();
    if (rank < 0 || process.found_by() == kFoundAsZombie) return false;
    return !ranks.emplace(member.look, rank).second;
  });
}

// The name in the environment, else the script's; of the lowest rank that has one.
std::string NameOf(const Looks& looks, const Members& members) {
  std::string name, script = "job";
  int32_t lowest = INT32_MAX;
  for (const LookedAt& member : members) {
    const v1::ProcessLook& process = At(looks, member);
    const v1::Identity& identity = process.process().identity();
    if (name.empty()) name = identity.job();
    if (process.script().empty() || identity.global_rank() >= lowest) continue;
    lowest = identity.global_rank();
    script = process.script();
  }
  return name.empty() ? script : name;
}

}  // namespace

std::vector<LookGroup> GroupLooks(const Looks& looks) {
  Members all;
  for (size_t look = 0; look < looks.size(); ++look) {
    for (int i = 0; i < looks[look].processes_size(); ++i) all.push_back({look, i});
  }
  std::vector<LookGroup> groups;
  std::map<std::string, int> names;
  for (const Members& members : Split(all, [&](LookedAt m) { return KeyOf(looks, m); })) {
    const auto parts = HasTwins(looks, members)
                           ? Split(members, [&](LookedAt m) { return KeyOfLauncher(looks, m); })
                           : std::vector<Members>{members};
    for (const Members& part : parts) {
      LookGroup group = {NameOf(looks, part), part};
      const int number = ++names[group.name];
      if (number > 1) absl::StrAppend(&group.name, "-", number);
      groups.push_back(std::move(group));
    }
  }
  return groups;
}

bool IsOfOneHost(const Looks& looks, const LookGroup& group) {
  return std::all_of(group.members.begin(), group.members.end(), [&](const LookedAt& member) {
    const v1::ProcessLook& process = At(looks, member);
    const int32_t world = process.process().identity().world_size();
    const bool is_whole = world > 0 && process.local_world_size() == world;
    const bool is_marked = process.marks_size() > 0 && process.marks(0).of_host();
    const bool is_zombie = process.found_by() == kFoundAsZombie;  // has the marks of a living one
    return member.look == group.members.front().look && (is_whole || is_marked || is_zombie);
  });
}

}  // namespace rollcall
