// SPDX-License-Identifier: Apache-2.0
#include "daemon/jobs/agent_releases.h"

#include <algorithm>
#include <set>

namespace rollcall {
namespace {

template <typename Releases>
void SortByAgents(Releases* releases) {
  std::sort(releases->begin(), releases->end(),
            [](const v1::AgentRelease& a, const v1::AgentRelease& b) {
              return a.agents() != b.agents() ? a.agents() > b.agents() : a.release() < b.release();
            });
}

void AddHosts(const v1::AgentRelease& more, v1::AgentRelease* release) {
  std::set<std::string> hosts(release->hosts().begin(), release->hosts().end());
  hosts.insert(more.hosts().begin(), more.hosts().end());
  while (hosts.size() > AgentReleases::kMostHosts) hosts.erase(std::prev(hosts.end()));
  release->mutable_hosts()->Assign(hosts.begin(), hosts.end());
}

}  // namespace

void AgentReleases::Add(const AgentName& agent) {
  Release& release = releases_[agent.release];
  ++release.agents;
  ++release.hosts[agent.host];
}

void AgentReleases::Remove(const AgentName& agent) {
  const auto release = releases_.find(agent.release);
  if (release == releases_.end()) return;
  const auto host = release->second.hosts.find(agent.host);
  if (host == release->second.hosts.end()) return;
  if (--host->second == 0) release->second.hosts.erase(host);
  if (--release->second.agents == 0) releases_.erase(release);
}

std::vector<v1::AgentRelease> AgentReleases::List() const {
  std::vector<v1::AgentRelease> list;
  for (const auto& [name, release] : releases_) {
    v1::AgentRelease& one = list.emplace_back();
    one.set_release(name);
    one.set_agents(release.agents);
    for (const auto& [host, agents] : release.hosts) {
      if (one.hosts_size() == kMostHosts) break;
      one.add_hosts(host);
    }
  }
  SortByAgents(&list);
  if (list.size() > kMostReleases) list.resize(kMostReleases);
  return list;
}

void JoinReleases(const google::protobuf::RepeatedPtrField<v1::AgentRelease>& more,
                  google::protobuf::RepeatedPtrField<v1::AgentRelease>* all) {
  for (const v1::AgentRelease& one : more) {
    const auto same = std::find_if(all->begin(), all->end(), [&](const v1::AgentRelease& known) {
      return known.release() == one.release();
    });
    if (same == all->end()) {
      *all->Add() = one;
      continue;
    }
    same->set_agents(same->agents() + one.agents());
    AddHosts(one, &*same);
  }
  SortByAgents(all);
  if (all->size() > AgentReleases::kMostReleases) {
    all->DeleteSubrange(AgentReleases::kMostReleases, all->size() - AgentReleases::kMostReleases);
  }
}

}  // namespace rollcall
