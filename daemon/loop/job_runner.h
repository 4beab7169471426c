// SPDX-License-Identifier: Apache-2.0
// The life of one job in the daemon: applies its ticks, diagnoses it, gives what was found to the
// incident book, and requests the stacks that an incident needs.
//
// Each job has a mailbox of ticks that have come and are not applied. A worker empties the mailbox,
// then diagnoses if that is due and something has changed. One worker at a time runs a job, so a
// huge job occupies one worker and delays no other job.
//
// The mailbox is bounded without a limit of its own: an agent's stream is read again only after its
// tick was applied, so it holds one message for each stream at most.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "base/worker_pool.h"
#include "daemon/diagnosis/diagnose.h"
#include "daemon/incidents/incident_book.h"
#include "daemon/jobs/call_rate.h"
#include "daemon/jobs/daemon_counters.h"
#include "daemon/jobs/job_store.h"
#include "daemon/jobs/timeline.h"
#include "daemon/loop/gpu_dump_watch.h"
#include "daemon/loop/host_facts_desk.h"
#include "daemon/loop/host_facts_watch.h"
#include "daemon/loop/job_pairs.h"
#include "daemon/loop/recorder_watch.h"
#include "daemon/loop/stack_desk.h"
#include "daemon/loop/start_watch.h"

namespace rollcall {

// A tick on its way to the jobs that it concerns. The last of them to let go of it ends its way.
class TickInTransit {
 public:
  // `applied` is called once, on any thread.
  TickInTransit(std::shared_ptr<const v1::Tick> tick, RoutedTick routed,
                std::function<void()> applied)
      : tick_(std::move(tick)), routed_(std::move(routed)), applied_(std::move(applied)) {}
  ~TickInTransit() { applied_(); }
  TickInTransit(const TickInTransit&) = delete;
  TickInTransit& operator=(const TickInTransit&) = delete;

  const v1::Tick& tick() const { return *tick_; }
  const RoutedTick& routed() const { return routed_; }

 private:
  const std::shared_ptr<const v1::Tick> tick_;
  const RoutedTick routed_;
  const std::function<void()> applied_;
};

class JobRunner : public WorkerPool::Task {
 public:
  // All outlive this object.
  struct Parts {
    JobStore* store;
    IncidentBook* incidents;
    StackDesk* stacks;
    CallRates* rates;
    DaemonCounters* counters;
    Timeline* timeline;
    HostFactsDesk* host_facts = nullptr;      // may be nullptr
    const JobOwnership* ownership = nullptr;  // nullptr means all jobs are this daemon's
    JobPairs* pairs = nullptr;                // nullptr means no two jobs are joined
    RecorderSource* recorders = nullptr;      // may be nullptr
    GpuDumpSource* gpu_dumps = nullptr;       // may be nullptr
  };
  struct Options {
    Limits limits;
    int64_t interval_ns = 100'000'000;  // between two diagnoses
    // The job is forgotten when its processes have ended, or were silent, for that long.
    int64_t keep_ended_ns = 0;
  };

  JobRunner(JobKey key, Parts parts, const Options& options)
      : key_(std::move(key)), parts_(parts), options_(options), recorders_(parts.recorders) {}

  // `part`: index into the tick's Routed::parts. Returns false, and takes nothing, once is_over().
  bool Post(std::shared_ptr<TickInTransit> tick, size_t part) ABSL_LOCKS_EXCLUDED(mutex_);
  // The next run diagnoses what has changed, whatever the time is.
  void DiagnoseNext() ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether all that was posted is applied and all that DiagnoseNext() wants is done.
  bool IsIdle() const ABSL_LOCKS_EXCLUDED(mutex_);

  int64_t Run() override ABSL_LOCKS_EXCLUDED(mutex_);

  // The job has ended long ago, and was forgotten.
  bool is_over() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Mail {
    std::shared_ptr<TickInTransit> tick;
    size_t part = 0;
  };

  bool ApplyMail() ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsDiagnosisDue(int64_t now_ns) ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t NextWakeNs() const;
  bool IsUnchanged(uint64_t version, int64_t now_ns) const;
  void Diagnose(int64_t now_ns) ABSL_LOCKS_EXCLUDED(mutex_);
  HostFactsRequest NextHostFacts(const JobState& state, const std::vector<int32_t>& involved);
  void AskForGpuDumps(std::vector<GpuDumpTarget> targets);
  // What an incident needs of agents.
  struct Wanted {
    std::vector<StackRequest> stacks;
    HostFactsRequest host_facts;
    bool partners = false;  // nothing was judged: it must be known first who shares something
  };
  Wanted Look(int64_t now_ns);
  // `began_ns`: when the job began. `joined`: the job with those that share something with it, as
  // they were a moment ago; nullptr if it stands alone.
  Wanted Judge(const JobState& state, int64_t now_ns, int64_t began_ns, const JoinedJobs* joined);
  std::optional<JoinedJobs> FindPartners(int64_t now_ns);
  bool AsksForPartners(const JobState& state, const std::vector<Verdict>& verdicts);
  std::optional<Referral> JudgeJoined(const JoinedJobs& joined, int64_t now_ns,
                                      std::vector<Verdict>* verdicts);
  void Forget(int64_t now_ns) ABSL_LOCKS_EXCLUDED(mutex_);
  // Another daemon has the job.
  void Release() ABSL_LOCKS_EXCLUDED(mutex_);
  void BeginAnew() ABSL_LOCKS_EXCLUDED(mutex_);

  const JobKey key_;
  const Parts parts_;
  const Options options_;

  // Only the worker that runs the job uses these.
  Diagnoser diagnoser_;
  StartWatch start_;
  HostFactsWatch host_facts_;
  RecorderWatch recorders_;
  GpuDumpWatch gpu_dumps_;
  int64_t ended_ns_ = 0;  // when all its processes had ended or were silent; 0 if they are not
  bool is_any_silent_ = false;
  uint64_t version_ = 0;  // of the state that was diagnosed last
  int64_t next_ns_ = 0;   // when the next diagnosis is due
  // The job hangs, and others may share what it waits in.
  bool may_have_partners_ = false;
  int64_t found_none_ns_ = 0;  // when the last search for partners found none; 0 if it found some

  mutable Mutex mutex_;  // taken last
  std::deque<Mail> mail_ ABSL_GUARDED_BY(mutex_);
  bool is_running_ ABSL_GUARDED_BY(mutex_) = false;
  bool diagnose_next_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_over_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace rollcall
