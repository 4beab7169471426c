// SPDX-License-Identifier: Apache-2.0
#include "daemon/jobs/agent_releases.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace rollcall {
namespace {

using ReleasesByHost = std::map<std::string, int>;

template <typename Releases>
ReleasesByHost CountByHost(const Releases& releases) {
  ReleasesByHost counts;
  for (const v1::AgentRelease& one : releases) {
    for (const std::string& host : one.hosts()) ++counts[host];
  }
  return counts;
}

// How many releases are named by that one of its hosts that names fewest.
int NamedByItsHost(const v1::AgentRelease& release, const ReleasesByHost& counts) {
  int fewest = AgentReleases::kMostReleases;
  for (const std::string& host : release.hosts()) fewest = std::min(fewest, counts.at(host));
  return fewest;
}

// Keeps those of most hosts. An agent says itself which release it is, and may have many streams:
// a host that names many releases hides only its own.
template <typename Releases>
void KeepThoseOfMostHosts(Releases* releases) {
  const ReleasesByHost counts = CountByHost(*releases);
  const auto place = [&counts](const v1::AgentRelease& one) {
    return std::tuple(-one.hosts_size(), NamedByItsHost(one, counts), -one.agents(), one.release());
  };
  std::sort(releases->begin(), releases->end(),
            [&place](const v1::AgentRelease& a, const v1::AgentRelease& b) {
              return place(a) < place(b);
            });
  const int kept = std::min<int>(AgentReleases::kMostReleases, static_cast<int>(releases->size()));
  releases->erase(releases->begin() + kept, releases->end());
}

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
  KeepThoseOfMostHosts(&list);
  SortByAgents(&list);
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
  KeepThoseOfMostHosts(all);
  SortByAgents(all);
}

}  // namespace rollcall
