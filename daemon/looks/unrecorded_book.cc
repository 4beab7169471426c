// SPDX-License-Identifier: Apache-2.0
#include "daemon/looks/unrecorded_book.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/cut_text.h"
#include "daemon/access/tenant_of.h"
#include "daemon/looks/group.h"
#include "daemon/model/client_limits.h"
#include "proto/timestamps.h"

namespace rollcall {
namespace {

constexpr size_t kMostNamed = 8;  // jobs, in an error
constexpr int kMostMarks = 2;     // the best one, and the launcher
constexpr int32_t kMostRank = 1 << 20;
constexpr size_t kMostTenants = 4096;

std::string Name(const std::string& text) { return CutText(text, limits::kName); }

// Leaves out what a look does not need.
v1::ProcessLook ToLook(const v1::UnrecordedProcess& listed) {
  v1::ProcessLook look;
  v1::ProcessUpdate* update = look.mutable_process();
  update->set_pid(listed.pid());
  update->set_start_time(listed.start_time());
  const v1::Identity& told = listed.identity();
  v1::Identity* identity = update->mutable_identity();
  identity->set_job(Name(told.job()));
  identity->set_global_rank(std::clamp(told.global_rank(), -1, kMostRank));
  identity->set_world_size(std::clamp(told.world_size(), -1, kMostRank));
  identity->set_local_rank(told.local_rank());
  identity->set_started_ns(told.started_ns());
  identity->set_inner_pid(told.inner_pid());
  if (told.has_uid()) identity->set_uid(told.uid());
  for (const auto& [from, to] : {std::pair(&told.node(), identity->mutable_node()),
                                 std::pair(&told.pod(), identity->mutable_pod()),
                                 std::pair(&told.container(), identity->mutable_container()),
                                 std::pair(&told.gpu_uuid(), identity->mutable_gpu_uuid()),
                                 std::pair(&told.stacks_off(), identity->mutable_stacks_off())}) {
    *to = Name(*from);
  }
  look.set_parent(listed.parent());
  look.set_name(Name(listed.name()));
  look.set_found_by(Name(listed.found_by()));
  look.set_script(Name(listed.script()));
  look.set_local_world_size(std::clamp(listed.local_world_size(), 0, kMostRank));
  for (int i = 0; i < std::min(listed.marks_size(), kMostMarks); ++i) {
    v1::JobMark* mark = look.add_marks();
    mark->set_kind(Name(listed.marks(i).kind()));
    mark->set_value(Name(listed.marks(i).value()));
    mark->set_of_host(listed.marks(i).of_host());
  }
  // Else it would be of one job with all others that have no mark.
  if (listed.marks().empty()) {
    v1::JobMark* mark = look.add_marks();
    mark->set_kind("unmarked");
    mark->set_value(absl::StrCat(listed.pid()));
    mark->set_of_host(true);
  }
  return look;
}

// A process with one rank of one is not a distributed job.
bool IsDistributed(const std::vector<ListedRanks>& hosts) {
  size_t ranks = 0;
  for (const ListedRanks& host : hosts) {
    ranks += host.members;
    for (const v1::ProcessLook& rank : host.look.processes()) {
      if (rank.process().identity().world_size() > 1) return true;
    }
  }
  return ranks > 1;
}

v1::UnrecordedJob ToProto(const JobId& id, const std::vector<ListedRanks>& hosts, int64_t now_ns) {
  v1::UnrecordedJob job;
  job.set_tenant(id.tenant);
  job.set_name(id.job);
  int64_t since_ns = now_ns;
  std::set<std::string> names;
  for (const ListedRanks& host : hosts) {
    if (host.members > 0) names.insert(host.look.host());
    for (size_t i = 0; i < host.members; ++i) {
      const v1::Identity& rank = host.look.processes(static_cast<int>(i)).process().identity();
      if (rank.has_uid() && !job.has_uid()) job.set_uid(rank.uid());
      job.set_ranks(job.ranks() + 1);
      job.set_world_size(std::max(job.world_size(), rank.world_size()));
      if (rank.started_ns() > 0) since_ns = std::min(since_ns, rank.started_ns());
    }
  }
  for (const std::string& name : names) job.add_hosts(name);
  *job.mutable_since() = ToTimestamp(since_ns);
  return job;
}

using User = std::pair<std::string, int64_t>;  // by tenant; -1 if unknown

// Of all members: those of one job have the same.
int64_t UidOf(const std::vector<ListedRanks>& hosts) {
  for (const ListedRanks& host : hosts) {
    if (host.members == 0) continue;
    const v1::Identity& rank = host.look.processes(0).process().identity();
    if (rank.has_uid()) return rank.uid();
  }
  return -1;
}

// Which jobs are in an answer with at most `most`, in their order, by the user of each. Each user
// has the same share, and the first ones have what is left.
std::vector<size_t> ShareOut(const std::vector<User>& users, size_t most) {
  std::map<User, size_t> of_user;
  for (const User& user : users) of_user.emplace(user, 0);
  const size_t share = std::max<size_t>(most / std::max<size_t>(of_user.size(), 1), 1);
  std::vector<size_t> taken, others;
  for (size_t i = 0; i < users.size(); ++i) {
    const bool has_share = taken.size() < most && ++of_user[users[i]] <= share;
    (has_share ? taken : others).push_back(i);
  }
  others.resize(std::min(others.size(), most - taken.size()));
  taken.insert(taken.end(), others.begin(), others.end());
  std::sort(taken.begin(), taken.end());
  return taken;
}

// Copies the ranks to their hosts: the members of the job first.
std::vector<ListedRanks> RanksOf(const std::vector<v1::HostLook>& looks,
                                 const std::vector<std::string>& agents, const LookGroup& group) {
  std::map<size_t, ListedRanks> by_look;
  for (const bool is_member : {true, false}) {
    for (const LookedAt& at : is_member ? group.members : group.left_behind) {
      ListedRanks& ranks = by_look[at.look];
      ranks.agent = agents[at.look];
      ranks.look.set_host(looks[at.look].host());
      v1::ProcessLook* rank = ranks.look.add_processes();
      *rank = ProcessAt(looks, at);
      // As listed: a judgement of this job alone names it so, too.
      rank->mutable_process()->mutable_identity()->set_job(group.name);
      ranks.members += is_member;
    }
  }
  std::vector<ListedRanks> hosts;
  for (auto& [look, ranks] : by_look) hosts.push_back(std::move(ranks));
  return hosts;
}

}  // namespace

void UnrecordedBook::Set(const AgentName& agent, const v1::UnrecordedProcesses& list) {
  List kept;
  kept.host = agent.host;
  const MutexLock lock(mutex_);
  RemoveLocked(agent.id);
  for (const v1::UnrecordedProcess& process : list.processes()) {
    if (kept.ranks == kMostOfAgent || ranks_ + kept.ranks == kMostOfAll) break;
    const std::optional<std::string> tenant = TenantOf(process.identity().tenant(), agent.tenants);
    if (!tenant.has_value()) continue;
    kept.of_tenant[*tenant].push_back(ToLook(process));
    ++kept.ranks;
  }
  if (kept.ranks == 0) return;
  CountChange(kept);
  ranks_ += kept.ranks;
  lists_[agent.id] = std::make_shared<const List>(std::move(kept));
}

void UnrecordedBook::Remove(const std::string& agent) {
  const MutexLock lock(mutex_);
  RemoveLocked(agent);
}

void UnrecordedBook::RemoveLocked(const std::string& agent) {
  const auto at = lists_.find(agent);
  if (at == lists_.end()) return;
  CountChange(*at->second);
  ranks_ -= at->second->ranks;
  lists_.erase(at);
}

// Tenants whose changes are forgotten have another version than before, too.
void UnrecordedBook::CountChange(const List& list) {
  grouped_ = nullptr;
  ++changes_;
  if (changed_in_.size() > kMostTenants) changed_in_.clear();
  for (const auto& [tenant, processes] : list.of_tenant) changed_in_[tenant] = changes_;
}

uint64_t UnrecordedBook::version(const Tenants& tenants) const {
  const MutexLock lock(mutex_);
  if (tenants.AreAll()) return changes_;
  uint64_t version = 0;
  for (const std::string& name : tenants.names()) {
    const auto at = changed_in_.find(name);
    if (at != changed_in_.end()) version += at->second;
  }
  return version;
}

std::shared_ptr<const UnrecordedBook::JobMap> UnrecordedBook::Grouped() const {
  const MutexLock grouping(grouping_);
  Lists lists;
  uint64_t changes = 0;
  {
    const MutexLock lock(mutex_);
    if (grouped_ != nullptr) return grouped_;
    lists = lists_;
    changes = changes_;
  }
  auto grouped = std::make_shared<const JobMap>(Group(lists));
  const MutexLock lock(mutex_);
  if (changes_ == changes) grouped_ = grouped;
  return grouped;
}

// Two agents may list a process of their host: it counts once.
UnrecordedBook::JobMap UnrecordedBook::Group(const Lists& lists) {
  std::map<std::string, std::pair<std::vector<v1::HostLook>, std::vector<std::string>>> tenants;
  std::set<std::tuple<std::string, int32_t, uint64_t>> seen;
  for (const auto& [agent, list] : lists) {
    for (const auto& [tenant, processes] : list->of_tenant) {
      auto& [looks, agents] = tenants[tenant];
      agents.push_back(agent);
      looks.emplace_back().set_host(list->host);
      for (const v1::ProcessLook& process : processes) {
        const v1::ProcessUpdate& id = process.process();
        if (!seen.emplace(list->host, id.pid(), id.start_time()).second) continue;
        *looks.back().add_processes() = process;
      }
    }
  }
  JobMap jobs;
  for (const auto& [tenant, listed] : tenants) {
    for (const LookGroup& group : GroupLooks(listed.first)) {
      std::vector<ListedRanks> hosts = RanksOf(listed.first, listed.second, group);
      if (IsDistributed(hosts)) jobs[JobId{tenant, group.name}] = std::move(hosts);
    }
  }
  return jobs;
}

std::vector<v1::UnrecordedJob> UnrecordedBook::Jobs(const Tenants& tenants, int64_t now_ns) const {
  const std::shared_ptr<const JobMap> jobs = Grouped();
  std::vector<const JobMap::value_type*> seen;
  std::vector<User> users;
  for (const auto& job : *jobs) {
    if (!tenants.Has(job.first.tenant)) continue;
    seen.push_back(&job);
    users.emplace_back(job.first.tenant, UidOf(job.second));
  }
  std::vector<v1::UnrecordedJob> list;
  for (const size_t at : ShareOut(users, kMostJobs)) {
    list.push_back(ToProto(seen[at]->first, seen[at]->second, now_ns));
  }
  return list;
}

absl::StatusOr<ListedJob> UnrecordedBook::Find(const std::string& job, const std::string& tenant,
                                               const Tenants& tenants) const {
  const std::shared_ptr<const JobMap> jobs = Grouped();
  std::vector<std::string> of_tenants, others;
  ListedJob found;
  for (const auto& [id, hosts] : *jobs) {
    if (!tenants.Has(id.tenant) || (!tenant.empty() && id.tenant != tenant)) continue;
    if (id.job != job) {
      if (others.size() < kMostNamed) others.push_back(ToText(id));
      continue;
    }
    of_tenants.push_back(id.tenant);
    found = {id, hosts};
  }
  if (of_tenants.size() == 1) return found;
  if (!of_tenants.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("the tenants ", absl::StrJoin(of_tenants, ", "),
                                                   " each have a job \"", job,
                                                   "\" that is not recorded: add --tenant=NAME"));
  }
  return absl::NotFoundError(absl::StrCat(
      "no agent lists a job \"", job, "\" that is not recorded",
      others.empty() ? "" : absl::StrCat("; there are ", absl::StrJoin(others, ", "))));
}

}  // namespace rollcall
