// SPDX-License-Identifier: Apache-2.0
// Jobs that go from a daemon to another one while both hold their leases: because the other one has
// come and gets its share, or because the agents of a job reach the other one only.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "base/durations.h"
#include "base/monotonic_clock.h"
#include "base/mutex.h"
#include "base/rendezvous.h"
#include "daemon/fleet/fleet.h"

namespace rollcall {
namespace {

constexpr int64_t kAskPauseNs = 5 * kSecond / 2;  // agents ask every second
constexpr size_t kMostWanted = 1000;              // jobs in one statement
constexpr size_t kMostHandOvers = 50;             // in one look
constexpr int64_t kAlertsWithinNs = 8 * kSecond;  // of a job that leaves
constexpr int64_t kShareAgainNs = 60 * kSecond;   // after a hand-over that was given up

}  // namespace

void Fleet::NoteAsked(Job* job) {
  const int64_t now_ns = BootNs();
  if (now_ns - job->asked_last_ns >= kAskPauseNs) job->asked_from_ns = now_ns;
  job->asked_last_ns = now_ns;
}

// Agents keep asking for them here, and their owner lives: they cannot reach it.
void Fleet::WantUnreached() {
  want_ns_ = BootNs() + std::min(kSecond, options_.want_after_ns);
  std::vector<JobId> wanted;
  {
    const MutexLock lock(mutex_);
    const int64_t now_ns = BootNs();
    for (const auto& [id, job] : jobs_) {
      const bool is_others = job.state == State::kOthers || job.state == State::kSought;
      const bool is_asked = job.asked_from_ns != 0 && now_ns - job.asked_last_ns < kAskPauseNs &&
                            now_ns - job.asked_from_ns >= options_.want_after_ns;
      if (is_others && is_asked && wanted.size() < kMostWanted) wanted.push_back(id);
    }
    if (wanted.empty() || away_since_ns_ != 0) return;
  }
  const absl::Status status = store_->Want(self_, wanted);
  if (!status.ok()) NoteAway(status);
}

void Fleet::YieldUnreached() {
  {
    const MutexLock lock(mutex_);
    if (away_since_ns_ != 0) return;
  }
  if (hooks_.has_backlog()) return;
  const auto wanted = store_->Wanted(self_);
  if (!wanted.ok()) return;
  size_t begun = 0;
  for (const auto& [id, by] : *wanted) {
    if (begun >= kMostHandOvers) break;
    if (hooks_.is_reached(id)) continue;
    ++begun;
    spdlog::warn("agents of job {} cannot reach this daemon but reach {}: handing the job over",
                 ToText(id), by);
    BeginLeaving(id, by);
  }
}

// Daemons that have come take their share.
void Fleet::BeginHandOvers() {
  if (hooks_.has_backlog()) return;
  for (const JobId& id : ToHandOver()) BeginLeaving(id, "");
}

void Fleet::BeginLeaving(const JobId& id, const std::string& to) {
  std::vector<std::string> agents = hooks_.agents(id);
  {
    const MutexLock lock(mutex_);
    Job& job = jobs_[id];
    if (job.state != State::kOwned) return;
    job.state = State::kLeaving;
    job.since_ns = BootNs();
    job.to = to;
  }
  AddAgents(id, &agents);
  {
    const MutexLock lock(mutex_);
    jobs_[id].agents = std::move(agents);
  }
  AwaitWrites(id);
}

std::vector<JobId> Fleet::ToHandOver() const {
  std::vector<JobId> result;
  const MutexLock lock(mutex_);
  const int64_t now_ns = BootNs();
  if (!lease_.IsHeld(now_ns)) return result;
  std::vector<std::string> addresses = {self_.address};
  for (const DaemonRow& daemon : daemons_) {
    const bool is_settled = now_ns - seen_.at(daemon.incarnation) >= options_.settled_after_ns;
    if (is_settled && daemon.address != self_.address) addresses.push_back(daemon.address);
  }
  for (const auto& [id, job] : jobs_) {
    if (job.state != State::kOwned || result.size() >= kMostHandOvers) continue;
    if (now_ns < job.stays_until_ns) continue;
    if (PreferredDaemon(addresses, id.tenant, id.job) != 0) result.push_back(id);
  }
  return result;
}

// The daemon that should get the job has gone, or the database is too slow. What this one knew of
// the job comes from the database.
void Fleet::Stay(const JobId& id, const std::vector<std::string>& agents) {
  {
    const MutexLock lock(mutex_);
    Job& job = jobs_[id];
    job.state = State::kClaimed;
    job.is_judged = false;
    job.since_ns = BootNs();
  }
  hooks_.release(id, agents);
}

void Fleet::FinishHandOvers() {
  struct Leaving {
    int64_t token, since_ns;
    DaemonRow to;
    std::vector<std::string> agents;
    std::function<bool()> written;
  };
  std::map<JobId, Leaving> leaving;
  bool is_away = false;
  {
    const MutexLock lock(mutex_);
    is_away = away_since_ns_ != 0;
    std::vector<std::string> addresses;
    for (const DaemonRow& daemon : daemons_) addresses.push_back(daemon.address);
    for (auto& [id, job] : jobs_) {
      if (job.state != State::kLeaving || addresses.empty()) continue;
      const auto named =
          std::find_if(daemons_.begin(), daemons_.end(),
                       [&name = job.to](const DaemonRow& daemon) { return daemon.name == name; });
      const DaemonRow& to = named != daemons_.end()
                                ? *named
                                : daemons_[PreferredDaemon(addresses, id.tenant, id.job)];
      leaving.emplace(id, Leaving{job.token, job.since_ns, to, job.agents, job.written});
    }
  }
  for (const auto& [id, job] : leaving) {
    const int64_t age_ns = BootNs() - job.since_ns;
    const bool is_written = !job.written || job.written();
    const bool gives_up = (!is_written || is_away) && age_ns >= options_.writes_within_ns;
    if (gives_up) share_ns_ = BootNs() + kShareAgainNs;
    if (!gives_up && (!is_written || (hooks_.is_alerting(id) && age_ns < kAlertsWithinNs)))
      continue;
    if (gives_up || job.to.address == self_.address) {
      Stay(id, job.agents);
      continue;
    }
    const absl::Status given = store_->HandOver(self_, id, job.token, job.to);
    if (absl::IsUnavailable(given)) return;
    if (!given.ok()) continue;  // Renew() finds out whose it is
    spdlog::info("handed job {} to daemon {}, which now shares the load", ToText(id), job.to.name);
    std::vector<Report> waiting;
    {
      const MutexLock lock(mutex_);
      for (auto& [agent, report] : jobs_[id].waiting) waiting.push_back(std::move(report));
      SetOthers(job.to.address, &jobs_[id]);
    }
    Answer(job.to.address, waiting);
    hooks_.release(id, job.agents);
    if (BootNs() >= renew_ns_) return;
  }
}

}  // namespace rollcall
