// SPDX-License-Identifier: Apache-2.0
#include "daemon/jobs/agent_book.h"

#include <algorithm>

#include "daemon/model/client_limits.h"

namespace rollcall {
namespace {

constexpr int64_t kUsualTickNs = 100'000'000;  // of agents that do not report it
constexpr int64_t kLongestTickNs = 60'000'000'000;
constexpr int kTicksUntilStale = 3;
constexpr int kTicksUntilSilent = 5;
constexpr int kTicksToSettle = 3;
// When ticks come late, an agent may miss so many of the usual delays before it is silent. Those of
// nine ticks in ten are usual: single slow hosts change nothing.
constexpr int kDelaysUntilSilent = 4;
constexpr double kUsualShare = 0.9;
// An agent whose ticks are further apart was stopped, or cut off. Well above what a busy host or
// network does to one.
constexpr int64_t kLongestTickGapNs = 5'000'000'000;
// A run of an agent that has ended is remembered for that long, and so many of them.
constexpr int64_t kAgentsKeptNs = 3600'000'000'000;
constexpr size_t kGoneOfHost = 64;
constexpr size_t kGone = limits::kHosts;

}  // namespace

class AgentBook::Agent {
 public:
  explicit Agent(AgentName n) : name(std::move(n)) {}
  int64_t LastSeenNs() const { return std::max(heard.heard_ns, welcomed_ns); }
  // So long without a stream that no query needs it.
  bool IsOld(int64_t now_ns) const {
    return streams <= 0 && unapplied == 0 &&
           now_ns - std::max(LastSeenNs(), came_ns) > kAgentsKeptNs;
  }

  const AgentName name;
  AgentHeard heard;
  int streams = 0;
  bool awaits_welcome = false;
  int64_t welcomed_ns = 0;
  bool is_urgent = false;
  bool is_cut = false;       // its last stream has ended, and no tick has come since
  int unapplied = 0;         // ticks that have come and are not applied yet
  int64_t last_pace_ns = 0;  // the interval between ticks that it was asked for before
  int64_t made_ns = 0;       // of the newest tick, by the agent's clock
  int64_t came_ns = 0;       // of the newest tick
  int ticks = 0;             // that have come, up to kTicksToSettle
  LeftOut left_out;          // as last reported
  uint64_t gone = 0;         // its place in gone_, or 0
};

const AgentName& AgentBook::Name(const AgentPtr& agent) { return agent->name; }

AgentBook::AgentPtr AgentBook::FindOrAdd(const AgentName& name) {
  AgentPtr& agent = agents_[name.id];
  if (agent == nullptr) {
    agent = std::make_shared<Agent>(name);
    agent->heard.tick_ns =
        name.tick_ns <= 0 ? kUsualTickNs : std::min(name.tick_ns, kLongestTickNs);
    agent->heard.is_settled = name.is_trusted;
  }
  watched_[name.id] = agent;
  return agent;
}

void AgentBook::Connected(const AgentName& name) {
  const MutexLock lock(mutex_);
  const AgentPtr agent = FindOrAdd(name);
  SetBack(agent);
  if (++agent->streams == 1) releases_.Add(agent->name);
  agent->awaits_welcome = true;
}

void AgentBook::Welcomed(const std::string& id, int64_t now_ns) {
  const MutexLock lock(mutex_);
  const auto at = agents_.find(id);
  if (at == agents_.end()) return;
  at->second->awaits_welcome = false;
  at->second->welcomed_ns = now_ns;
  watched_[id] = at->second;
}

std::vector<std::string> AgentBook::Disconnected(const AgentName& name) {
  const MutexLock lock(mutex_);
  const AgentPtr gone = FindOrAdd(name);
  std::vector<std::string> refused;
  if (--gone->streams > 0) return refused;
  releases_.Remove(gone->name);
  gone->is_cut = true;
  gone->heard.stale = true;
  gone->awaits_welcome = false;
  const auto on_host = refused_.extract(name.host);
  if (!on_host.empty()) refused.assign(on_host.mapped().begin(), on_host.mapped().end());
  SetGone(gone);
  return refused;
}

bool AgentBook::IsConnected(const std::string& id) const {
  const MutexLock lock(mutex_);
  const auto at = agents_.find(id);
  return at != agents_.end() && at->second->streams > 0;
}

std::vector<v1::AgentRelease> AgentBook::Releases() const {
  const MutexLock lock(mutex_);
  return releases_.List();
}

void AgentBook::SetGone(const AgentPtr& agent) {
  SetBack(agent);
  agent->gone = ++last_gone_;
  gone_[agent->gone] = agent;
  Gone& of_host = gone_of_host_[agent->name.host];
  of_host[agent->gone] = agent;
  // Until an agent is silent, its jobs need the clock to look at it: its host may be lost. So there
  // are more for the seconds that this takes, as many as streams can begin and end in them.
  while (of_host.size() > kGoneOfHost && IsOver(*of_host.begin()->second)) ForgetFirst(of_host);
  while (gone_.size() > kGone && IsOver(*gone_.begin()->second)) ForgetFirst(gone_);
}

// Without a stream, nothing changes in such an agent any more.
bool AgentBook::IsOver(const Agent& agent) {
  return agent.unapplied == 0 && (agent.heard.silent || agent.heard.heard_ns == 0);
}

void AgentBook::SetBack(const AgentPtr& agent) {
  if (agent->gone == 0) return;
  gone_.erase(agent->gone);
  const auto of_host = gone_of_host_.find(agent->name.host);
  of_host->second.erase(agent->gone);
  if (of_host->second.empty()) gone_of_host_.erase(of_host);
  agent->gone = 0;
}

void AgentBook::ForgetFirst(const Gone& gone) {
  const AgentPtr agent = gone.begin()->second;
  Forget(agent);
  ++forgotten_;
}

void AgentBook::Forget(const AgentPtr& agent) {
  SetBack(agent);
  clocks_.Forget(agent->name.id);
  const auto refused = refused_.find(agent->name.host);
  if (refused != refused_.end()) {
    refused->second.erase(agent->name.id);
    if (refused->second.empty()) refused_.erase(refused);
  }
  watched_.erase(agent->name.id);
  agents_.erase(agent->name.id);
}

uint64_t AgentBook::TakeForgotten() {
  const MutexLock lock(mutex_);
  return std::exchange(forgotten_, 0);
}

AgentBook::Origin AgentBook::RecordTick(const AgentName& name, int64_t made_ns, int64_t came_ns) {
  const MutexLock lock(mutex_);
  const AgentPtr agent = FindOrAdd(name);
  AgentHeard& heard = agent->heard;
  ++agent->unapplied;
  Origin origin;
  origin.agent = agent;
  origin.came_ns = came_ns;
  origin.tick_ns = heard.tick_ns;
  origin.is_urgent = agent->is_urgent;
  origin.is_outdated = made_ns < agent->made_ns;
  if (origin.is_outdated) return origin;
  if (agent->came_ns != 0 && std::max(made_ns - agent->made_ns, came_ns - agent->came_ns) >
                                 kLongestTickGapNs + heard.tick_ns) {
    heard.counts_from_ns = came_ns;
  }
  // A large tick comes in pieces.
  const bool is_next = made_ns != agent->made_ns;
  if (is_next && agent->ticks < kTicksToSettle) ++agent->ticks;
  // A new pace begins with the agent's next tick.
  if (is_next && agent->came_ns != 0 && !agent->is_cut) {
    gaps_.Add(came_ns, came_ns - agent->came_ns - std::max(heard.tick_ns, agent->last_pace_ns));
    agent->last_pace_ns = heard.tick_ns;
  }
  heard.is_settled = heard.is_settled || agent->ticks >= kTicksToSettle;
  agent->made_ns = made_ns;
  agent->came_ns = came_ns;
  agent->awaits_welcome = false;  // an older agent does not wait for it
  origin.offset_ns = clocks_.Update(name.id, made_ns, came_ns);
  origin.shift_ns = origin.offset_ns - clocks_.FirstOffset(name.id);
  origin.now_ns = made_ns + origin.offset_ns;
  return origin;
}

void AgentBook::Applied(const Origin& origin) {
  if (origin.agent == nullptr) return;
  const MutexLock lock(mutex_);
  --origin.agent->unapplied;
  if (origin.is_outdated) return;
  // A tick of the ended stream may be applied after the end.
  if (origin.agent->streams > 0) origin.agent->is_cut = false;
  AgentHeard& heard = origin.agent->heard;
  if (heard.heard_ns == 0) heard.first_ns = origin.came_ns;
  heard.heard_ns = std::max(heard.heard_ns, origin.came_ns);
}

AgentBook::LeftOut AgentBook::RecordLeftOut(const Origin& origin, const LeftOut& left_out) {
  LeftOut fresh;
  if (left_out.broken_streams == 0 && left_out.segments == 0) return fresh;  // the usual case
  if (origin.agent == nullptr) return fresh;
  const MutexLock lock(mutex_);
  LeftOut& known = origin.agent->left_out;
  fresh.broken_streams =
      left_out.broken_streams - std::min(left_out.broken_streams, known.broken_streams);
  fresh.segments = left_out.segments - std::min(left_out.segments, known.segments);
  known.broken_streams = std::max(known.broken_streams, left_out.broken_streams);
  known.segments = left_out.segments;
  return fresh;
}

int64_t AgentBook::OldestUnapplied() const {
  int64_t oldest_ns = 0;
  const MutexLock lock(mutex_);
  for (const auto& [id, agent] : watched_) {
    if (agent->unapplied == 0) continue;
    if (oldest_ns == 0 || agent->came_ns < oldest_ns) oldest_ns = agent->came_ns;
  }
  return oldest_ns;
}

int64_t AgentBook::UsualLateness(int64_t now_ns, double share) const {
  const MutexLock lock(mutex_);
  return gaps_.Usual(now_ns, share);
}

void AgentBook::SetPace(const std::string& id, int64_t tick_ns) {
  const MutexLock lock(mutex_);
  const auto at = agents_.find(id);
  if (at == agents_.end()) return;
  at->second->last_pace_ns = at->second->heard.tick_ns;
  at->second->heard.tick_ns = std::min(tick_ns, kLongestTickNs);
}

void AgentBook::SetUrgent(std::vector<AgentPtr> agents) {
  const MutexLock lock(mutex_);
  for (const AgentPtr& agent : urgent_) agent->is_urgent = false;
  for (const AgentPtr& agent : agents) agent->is_urgent = true;
  urgent_ = std::move(agents);
}

bool AgentBook::IsFree(const AgentPtr& owner) const {
  const MutexLock lock(mutex_);
  return owner == nullptr || owner->streams <= 0 || owner->heard.silent;
}

bool AgentBook::IsHeard(const AgentPtr& agent) const {
  const MutexLock lock(mutex_);
  return agent->streams > 0 && !agent->heard.stale;
}

void AgentBook::SetRefused(const AgentPtr& agent) {
  const MutexLock lock(mutex_);
  refused_[agent->name.host].insert(agent->name.id);
}

std::vector<std::string> AgentBook::MarkSilent(int64_t now_ns, int64_t silent_after_ns) {
  std::vector<std::string> fallen;
  const MutexLock lock(mutex_);
  silent_after_ns += kDelaysUntilSilent * gaps_.Usual(now_ns, kUsualShare);
  for (auto at = watched_.begin(); at != watched_.end();) {
    const AgentPtr agent = at->second;
    ++at;
    if (agent->IsOld(now_ns)) {
      Forget(agent);
      continue;
    }
    const bool was_silent = agent->heard.silent;
    MarkSilentAgent(agent.get(), now_ns, silent_after_ns);
    if (agent->heard.silent && !was_silent) fallen.push_back(agent->name.host);
    // Runs that are over may be many, and this function runs several times a second.
    if (agent->gone != 0 && IsOver(*agent)) watched_.erase(agent->name.id);
  }
  ForgetOld(now_ns);
  return fallen;
}

void AgentBook::MarkSilentAgent(Agent* agent, int64_t now_ns, int64_t silent_after_ns) const {
  AgentHeard& heard = agent->heard;
  if (heard.heard_ns == 0) return;
  const int64_t age_ns = now_ns - heard.heard_ns;
  heard.stale = agent->is_cut || age_ns > kTicksUntilStale * heard.tick_ns;
  // A tick that waits for the daemon shows that the agent lives, and so does a stream that waits
  // for its welcome.
  const bool awaits = agent->unapplied > 0 || agent->awaits_welcome;
  const int64_t silence_ns = now_ns - agent->LastSeenNs();
  heard.silent =
      !awaits && silence_ns >= std::max(silent_after_ns, kTicksUntilSilent * heard.tick_ns);
}

// The agents lost their streams in this order. Ticks that came later may keep one a little longer,
// and those behind it.
void AgentBook::ForgetOld(int64_t now_ns) {
  while (!gone_.empty() && gone_.begin()->second->IsOld(now_ns)) {
    const AgentPtr agent = gone_.begin()->second;
    Forget(agent);
  }
}

size_t AgentBook::watched() const {
  const MutexLock lock(mutex_);
  return watched_.size();
}

std::vector<AgentHeard> AgentBook::Heard(const std::vector<AgentPtr>& agents) const {
  std::vector<AgentHeard> all;
  all.reserve(agents.size());
  const MutexLock lock(mutex_);
  for (const AgentPtr& agent : agents) all.push_back(agent->heard);
  return all;
}

}  // namespace rollcall
