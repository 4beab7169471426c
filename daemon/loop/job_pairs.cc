// SPDX-License-Identifier: Apache-2.0
#include "daemon/loop/job_pairs.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <set>
#include <utility>

#include "base/durations.h"
#include "daemon/model/progress.h"

namespace rollcall {
namespace {

constexpr size_t kMostJobs = 8;                   // that are joined with one
constexpr size_t kMostLookedAt = 64;              // of those that may share something with one
constexpr int64_t kSummonedForNs = 60 * kSecond;  // a job that waits summons at each diagnosis

// Whether all its processes had ended before this time.
bool HadEndedBefore(const JobState& job, int64_t time_ns) {
  return std::all_of(job.processes.begin(), job.processes.end(), [time_ns](const Process& process) {
    return HasEnded(process) && process.ended_ns < time_ns;
  });
}

}  // namespace

class JobPairs::Search {
 public:
  Search(const JobStore& store, JobState first) : store_(store) {
    known_.insert(first.key);
    jobs_.push_back(std::move(first));
  }

  // A job that is known to share something.
  void Add(const JobKey& key) {
    if (jobs_.size() > kMostJobs || known_.count(key) != 0) return;
    JobState state = store_.Get(key);
    if (!state.processes.empty()) Keep(std::move(state));
  }

  std::optional<JoinedJobs> Run() {
    for (size_t i = 0; i < jobs_.size(); ++i) AddThoseOf(jobs_[i]);
    if (jobs_.size() == 1) return std::nullopt;
    std::vector<JobState> others(std::make_move_iterator(jobs_.begin() + 1),
                                 std::make_move_iterator(jobs_.end()));
    JoinedJobs joined = JoinJobs(jobs_.front(), others);
    if (joined.parts.size() == 1) return std::nullopt;
    return joined;
  }

 private:
  void Keep(JobState state) {
    known_.insert(state.key);
    jobs_.push_back(std::move(state));
  }

  void AddThoseOf(const JobState& job) {
    const bool by_launch = WaitsForKey(job);
    const int64_t began_ns = store_.BeganNs(job.key);
    size_t looked_at = 0;
    for (const JobStore::Sharer& sharer :
         store_.FindSharers(job.key, OpenCommunicators(job), by_launch)) {
      if (jobs_.size() > kMostJobs || ++looked_at > kMostLookedAt) return;
      if (known_.count(sharer.key) == 0) AddIfShared(job, sharer, began_ns);
    }
  }

  // Copies the state of a job only if it does share something: ids of unrelated jobs may be alike.
  void AddIfShared(const JobState& job, const JobStore::Sharer& sharer, int64_t began_ns) {
    std::optional<JobState> shared;
    store_.Read(sharer.key, [&](const JobState& other) {
      if (other.processes.empty() || other.processes.size() > kMostJoinedProcesses) return;
      const bool is_proven = sharer.is_of_launch ? !HadEndedBefore(other, began_ns)
                                                 : !SharedCommunicators(job, other).empty();
      if (is_proven) shared = other;
    });
    if (shared) Keep(*std::move(shared));
  }

  const JobStore& store_;
  std::deque<JobState> jobs_;  // references to them stay valid
  std::set<JobKey> known_;
};

std::optional<JoinedJobs> JobPairs::Find(const JobKey& job, int64_t now_ns) {
  Search search(*store_, store_->Get(job));
  for (const JobKey& by : SummonersOf(job, now_ns)) search.Add(by);
  return search.Run();
}

void JobPairs::Summon(const JobKey& teller, const JobKey& by, int64_t now_ns) {
  const MutexLock lock(mutex_);
  summons_[teller][by] = now_ns;
  for (auto at = summons_.begin(); at != summons_.end();) {
    const bool is_over =
        std::all_of(at->second.begin(), at->second.end(),
                    [now_ns](const auto& one) { return now_ns - one.second > kSummonedForNs; });
    at = is_over ? summons_.erase(at) : std::next(at);
  }
}

bool JobPairs::IsSummoned(const JobKey& job, int64_t now_ns) const {
  return !SummonersOf(job, now_ns).empty();
}

void JobPairs::SetReferral(const JobKey& job, std::optional<Referral> referral) {
  const MutexLock lock(mutex_);
  if (!referral && told_.count(job) == 0) return;
  Told& told = told_[job];
  if (told.by == referral) return;
  told.by = std::move(referral);
  ++told.changes;
  ++changes_;
}

std::optional<Referral> JobPairs::ReferralOf(const JobKey& job) const {
  const MutexLock lock(mutex_);
  const auto told = told_.find(job);
  return told == told_.end() ? std::nullopt : told->second.by;
}

uint64_t JobPairs::Changes(const JobKey& job) const {
  const MutexLock lock(mutex_);
  const auto told = told_.find(job);
  return told == told_.end() ? 0 : told->second.changes;
}

uint64_t JobPairs::Changes() const {
  const MutexLock lock(mutex_);
  return changes_;
}

void JobPairs::Forget(const JobKey& job) {
  const MutexLock lock(mutex_);
  summons_.erase(job);
  told_.erase(job);
}

std::vector<JobKey> JobPairs::SummonersOf(const JobKey& job, int64_t now_ns) const {
  std::vector<JobKey> summoners;
  const MutexLock lock(mutex_);
  const auto known = summons_.find(job);
  if (known == summons_.end()) return summoners;
  for (const auto& [by, at_ns] : known->second) {
    if (now_ns - at_ns <= kSummonedForNs) summoners.push_back(by);
  }
  return summoners;
}

}  // namespace rollcall
