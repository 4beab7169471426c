// SPDX-License-Identifier: Apache-2.0
#include "agent/link/job_owners.h"

#include <algorithm>
#include <limits>

#include "base/names.h"
#include "base/rendezvous.h"
#include "base/server_address.h"

namespace rollcall {
namespace {

constexpr char kJobIfUnnamed[] = "default";
constexpr size_t kMaxAddress = 512;  // bytes
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

bool Has(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

const std::string& Preferred(const std::vector<std::string>& daemons, const std::string& tenant,
                             const std::string& job) {
  return daemons[PreferredDaemon(daemons, tenant, job)];
}

}  // namespace

JobOwners::JobOwners(std::string host, std::vector<std::string> given,
                     std::function<void()> changed)
    : host_(std::move(host)), changed_(std::move(changed)), given_(std::move(given)) {}

void JobOwners::Change() {
  ++version_;
  if (changed_) changed_();
}

void JobOwners::SetGiven(std::vector<std::string> given) {
  {
    const MutexLock lock(mutex_);
    if (given.empty() || given == given_ || is_frozen_) return;
    given_ = std::move(given);
    CountTurns();
  }
  Change();
}

void JobOwners::Opened(const std::string& stream, int64_t now_ns) {
  const MutexLock lock(mutex_);
  streams_.emplace(stream, Stream{State::kOpening, now_ns, stream});
}

void JobOwners::Welcomed(const std::string& stream, const std::string& address,
                         const std::vector<std::string>& daemons, bool stays, int64_t now_ns) {
  {
    const MutexLock lock(mutex_);
    const auto at = streams_.find(stream);
    if (at == streams_.end() || is_frozen_) return;
    at->second.daemon = IsUsable(address) ? address : stream;
    at->second.state = stays ? State::kHere : State::kOpening;
    at->second.since_ns = now_ns;
    UseDaemons(daemons);
    was_welcome_ = true;
    CountTurns();
  }
  Change();
}

void JobOwners::SetDaemons(const std::vector<std::string>& daemons) {
  {
    const MutexLock lock(mutex_);
    if (is_frozen_ || !UseDaemons(daemons)) return;
    CountTurns();
  }
  Change();
}

// False: nothing new.
bool JobOwners::UseDaemons(const std::vector<std::string>& daemons) {
  std::set<std::string> usable;
  for (const std::string& address : daemons) {
    if (usable.size() < kMostDaemons && IsUsable(address)) usable.insert(address);
  }
  std::vector<std::string> all(usable.begin(), usable.end());
  if (all.empty() || all == daemons_) return false;
  daemons_ = std::move(all);
  return true;
}

// A file of this host is the agent's to choose, not a daemon's.
bool JobOwners::IsUsable(const std::string& address) const {
  if (address.empty() || address.size() > kMaxAddress) return false;
  if (Has(given_, address)) return true;
  const ServerAddress server = SplitServerAddress(address);
  return !server.is_unix && !server.host.empty() && !server.port.empty();
}

void JobOwners::Told(const std::string& stream, const std::string& tenant, const std::string& job,
                     const std::string& daemon) {
  {
    const MutexLock lock(mutex_);
    const auto at = jobs_.find(KeyOf(tenant, job));
    if (at == jobs_.end() || is_frozen_) return;
    if (!daemon.empty() && !IsUsable(daemon)) return;
    const std::string& owner = daemon.empty() ? DaemonOf(stream) : daemon;
    Job& about = at->second;
    if (about.told == owner && about.told_by == stream) return;
    about.told = owner;
    about.told_by = stream;
    CountTurn(at->first, &about);
  }
  Change();
}

void JobOwners::Broken(const std::string& stream, int64_t now_ns) {
  {
    const MutexLock lock(mutex_);
    const auto at = streams_.find(stream);
    if (at == streams_.end() || is_frozen_ || at->second.state == State::kAway) return;
    at->second.state = at->second.state == State::kHere ? State::kBroken : State::kAway;
    at->second.since_ns = now_ns;
    CountTurns();
  }
  Change();
}

void JobOwners::Closed(const std::string& stream) {
  {
    const MutexLock lock(mutex_);
    if (streams_.erase(stream) == 0) return;
    CountTurns();
  }
  Change();
}

bool JobOwners::Expired(Stream* stream, int64_t now_ns, int64_t* next_ns) const {
  int64_t until_ns = kNever;
  if (stream->state == State::kOpening) until_ns = stream->since_ns + kWelcomeWithin;
  if (stream->state == State::kBroken) until_ns = stream->since_ns + kBackWithin;
  if (now_ns < until_ns) {
    *next_ns = std::min(*next_ns, until_ns);
    return false;
  }
  stream->state = State::kAway;
  return true;
}

int64_t JobOwners::Expire(int64_t now_ns) {
  int64_t next_ns = kNever;
  bool has_changed = false;
  {
    const MutexLock lock(mutex_);
    if (is_frozen_) return next_ns;
    for (auto& [address, stream] : streams_) {
      has_changed = Expired(&stream, now_ns, &next_ns) || has_changed;
    }
    CountTurns();
    for (auto at = jobs_.begin(); at != jobs_.end();) {
      at = now_ns - at->second.seen_ns > kJobStays ? jobs_.erase(at) : std::next(at);
    }
  }
  if (has_changed) Change();
  return next_ns;
}

void JobOwners::Freeze() {
  const MutexLock lock(mutex_);
  is_frozen_ = true;
}

JobOwners::Key JobOwners::KeyOf(const std::string& tenant, const std::string& job) {
  return {tenant.empty() ? kTenantIfUnnamed : tenant, job.empty() ? kJobIfUnnamed : job};
}

const std::string& JobOwners::DaemonOf(const std::string& stream) const {
  const auto at = streams_.find(stream);
  return at == streams_.end() ? stream : at->second.daemon;
}

// Returns the one stream to the daemon that counts, or nullptr.
const std::string* JobOwners::StreamTo(const std::string& daemon) const {
  const std::string* best = nullptr;
  State best_state = State::kAway;
  for (const auto& [address, stream] : streams_) {
    if (stream.daemon != daemon) continue;
    const bool is_own = address == daemon && stream.state == best_state;
    if (best != nullptr && stream.state >= best_state && !is_own) continue;
    best = &address;
    best_state = stream.state;
  }
  return best;
}

// A stream that is only being opened proves nothing about a daemon whose other stream has failed.
bool JobOwners::IsAway(const std::string& daemon) const {
  bool is_away = false;
  for (const auto& [address, stream] : streams_) {
    if (stream.daemon != daemon) continue;
    if (stream.state == State::kHere || stream.state == State::kBroken) return false;
    is_away = is_away || stream.state == State::kAway;
  }
  return is_away;
}

std::vector<std::string> JobOwners::All() const {
  if (!daemons_.empty()) return daemons_;
  std::set<std::string> all;
  for (const std::string& address : given_) all.insert(DaemonOf(address));
  return {all.begin(), all.end()};
}

// Returns those that are not away, or all if every one is away.
std::vector<std::string> JobOwners::Living() const {
  const std::vector<std::string> all = All();
  std::vector<std::string> living;
  for (const std::string& daemon : all) {
    if (!IsAway(daemon)) living.push_back(daemon);
  }
  if (!living.empty()) return living;
  // The daemons that were named may all be gone, and others in their places.
  for (const std::string& address : given_) {
    const std::string& daemon = DaemonOf(address);
    if (!IsAway(daemon) && !Has(living, daemon)) living.push_back(daemon);
  }
  return living.empty() ? all : living;
}

std::string JobOwners::FindHome() const { return Preferred(Living(), "", host_); }

// `job` may be nullptr. Before the first welcome the agent does not know all daemons: its only
// stream tells it.
std::string JobOwners::FindOwner(const Key& key, const Job* job) const {
  if (!was_welcome_) return FindHome();
  if (job != nullptr && !job->told.empty() && !IsAway(job->told)) return job->told;
  return Preferred(Living(), key.first, key.second);
}

void JobOwners::CountTurn(const Key& key, Job* job) {
  std::string owner = FindOwner(key, job);
  if (owner == job->owner) return;
  job->owner = std::move(owner);
  ++job->turn;
}

void JobOwners::CountTurns() {
  for (auto& [key, job] : jobs_) CountTurn(key, &job);
}

uint64_t JobOwners::Takes(const std::string& stream, const std::string& tenant,
                          const std::string& job, int64_t now_ns) {
  uint64_t turn = 0;
  bool is_new = false;
  {
    const MutexLock lock(mutex_);
    const Key key = KeyOf(tenant, job);
    const auto [at, added] = jobs_.try_emplace(key);
    is_new = added;
    at->second.seen_ns = now_ns;
    CountTurn(key, &at->second);
    const std::string& owner = at->second.owner;
    const std::string* taking = owner == DaemonOf(stream) ? StreamTo(owner) : nullptr;
    if (taking != nullptr && *taking == stream) turn = at->second.turn;
  }
  if (is_new) Change();
  return turn;
}

std::string JobOwners::Owner(const std::string& tenant, const std::string& job) const {
  const MutexLock lock(mutex_);
  const Key key = KeyOf(tenant, job);
  const auto at = jobs_.find(key);
  return FindOwner(key, at == jobs_.end() ? nullptr : &at->second);
}

std::string JobOwners::Home() const {
  const MutexLock lock(mutex_);
  return FindHome();
}

// To a daemon that is away, also the stream to its own address: that of a name or of a load
// balancer may lead elsewhere by now.
void JobOwners::AddStreamTo(const std::string& daemon, std::set<std::string>* streams) const {
  const std::string* stream = StreamTo(daemon);
  streams->insert(stream == nullptr ? daemon : *stream);
  if (IsAway(daemon)) streams->insert(daemon);
}

std::set<std::string> JobOwners::Needed(int64_t now_ns) const {
  std::set<std::string> needed = Taking(now_ns);
  const MutexLock lock(mutex_);
  const std::vector<std::string> all = All();
  bool has_jobs = false;
  for (const auto& [key, job] : jobs_) {
    if (!was_welcome_ || now_ns - job.seen_ns > kJobStays) continue;
    has_jobs = true;
    const bool is_told = !job.told.empty();
    if (is_told && !IsAway(job.told)) continue;
    AddStreamTo(is_told ? job.told : Preferred(all, key.first, key.second), &needed);
  }
  if (was_welcome_ && !has_jobs) AddStreamTo(Preferred(all, "", host_), &needed);
  const bool all_away =
      std::all_of(all.begin(), all.end(),
                  [this](const std::string& daemon)
                      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return IsAway(daemon); });
  if (!all_away) return needed;
  for (const std::string& daemon : all) AddStreamTo(daemon, &needed);
  needed.insert(given_.begin(), given_.end());
  return needed;
}

std::set<std::string> JobOwners::Taking(int64_t now_ns) const {
  const MutexLock lock(mutex_);
  std::set<std::string> owners;
  for (const auto& [key, job] : jobs_) {
    if (now_ns - job.seen_ns <= kJobStays) owners.insert(FindOwner(key, &job));
  }
  if (owners.empty()) owners.insert(FindHome());
  std::set<std::string> taking;
  for (const std::string& daemon : owners) AddStreamTo(daemon, &taking);
  return taking;
}

bool JobOwners::MustAskAgain(const std::string& stream, int64_t now_ns) const {
  const MutexLock lock(mutex_);
  return std::any_of(jobs_.begin(), jobs_.end(),
                     [&](const auto& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                       const Job& job = entry.second;
                       return job.told_by == stream && job.told != DaemonOf(stream) &&
                              IsAway(job.told) && now_ns - job.seen_ns <= kJobStays &&
                              FindOwner(entry.first, &job) == DaemonOf(stream);
                     });
}

bool JobOwners::IsInFleet(const std::string& address) const {
  const MutexLock lock(mutex_);
  return Has(daemons_, DaemonOf(address));
}

}  // namespace rollcall
