// SPDX-License-Identifier: Apache-2.0
// This daemon among several on one database: its lease, the jobs that it owns, and where the others
// are.
//
// A job has one owner. The daemon claims a job when an agent reports it; it takes the job's ticks
// once it has the job and knows what an earlier owner has found out. A job of another daemon is
// redirected. A daemon that has lost a job, because it stood still or was cut off, drops it without
// an alert.
//
// While the database does not answer, the daemon keeps its jobs, and takes new ones for the time
// being: it detects. Its alerts go out if no other daemon was there at the last renewal; else they
// wait until it can prove that no other daemon has the job. If another one still reaches the
// database, the jobs go there as soon as this daemon's lease is over. A job whose agents reach
// another daemon, and not this one, goes there, too.
//
// Owns one thread, which waits for the database. All other calls are quick, from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/stop_signal.h"
#include "daemon/fleet/daemon_row.h"
#include "daemon/fleet/fleet_store.h"
#include "daemon/fleet/fleet_view.h"
#include "daemon/fleet/lease.h"
#include "daemon/history/history.h"
#include "daemon/history/postgres_options.h"
#include "daemon/jobs/ownership.h"
#include "daemon/model/client_limits.h"

namespace rollcall {

struct FleetOptions {
  PostgresOptions database;
  HistoryLimits limits;
  int64_t lease_ns = 6'000'000'000;
  int64_t margin_ns = 1'000'000'000;  // for clocks that go at different speeds
  int64_t renew_every_ns = 2'000'000'000;
  int64_t try_again_ns = 500'000'000;  // to renew or to claim, while the database does not answer
  // The database must have been silent for this long before the daemon takes jobs without it.
  int64_t patience_ns = 3'000'000'000;
  // How long a daemon must be there before others give it its share of jobs.
  int64_t settled_after_ns = 30'000'000'000;
  int64_t share_every_ns = 5'000'000'000;     // from one look for jobs to hand over to the next
  int64_t writes_within_ns = 3'000'000'000;   // of a job that comes back, or leaves
  int64_t forget_others_ns = 60'000'000'000;  // jobs of other daemons, for which no agent asks
  int64_t ask_again_ns = 1'000'000'000;       // who owns a job of another daemon
  int64_t owners_every_ns = 2'000'000'000;    // from one look at the owners of all jobs to the next
  // Agents must ask for a job of another daemon for so long before this one asks that daemon for
  // it.
  int64_t want_after_ns = 2'000'000'000;
  size_t most_jobs = 100'000;  // that agents have reported here, also those of other daemons
  std::string alone_file;      // remembers whether there were other daemons; "": nothing does
};

class Fleet : public JobOwnership, public FleetView {
 public:
  // An agent's report of a job that this daemon does not own.
  struct Report {
    JobId job;
    std::string agent;           // its id
    bool follows_owners = true;  // else it has one daemon for all jobs
    std::string tenant, name;    // as it reports the job
  };

  // What the thread asks of the daemon. None but with_database may wait for long.
  struct Hooks {
    // Before Owns() becomes true.
    std::function<void(const JobId& job, Continuation from_earlier)> adopt;
    // After IsUnproven() has become false, because the job is this daemon's.
    std::function<void(const JobId& job)> prove;
    // The ids of the agents that report the job.
    std::function<std::vector<std::string>(const JobId& job)> agents;
    // After Owns() has become false. These agents must report the job again.
    std::function<void(const JobId& job, const std::vector<std::string>& agents)> release;
    // Answers a report. `owner`: address of the daemon that has the job; "": this one.
    std::function<void(const Report& report, const std::string& owner)> tell;
    // Whether the daemon still has something of the job.
    std::function<bool(const JobId& job)> has;
    // Those of these daemons that the database answers. May wait for a second.
    std::function<std::vector<DaemonRow>(const std::vector<DaemonRow>& daemons)> with_database;
    // The daemon has taken the job without the database: it cannot know the numbers of its
    // incidents.
    std::function<void(const JobId& job)> take_unknown;
    // Whether so much waits for the database that a hand-over would take long.
    std::function<bool()> has_backlog;
    // Returns a function that tells whether all that was written before this call is in the
    // database.
    std::function<std::function<bool()>()> written;
    // Whether ticks come from an agent that reports the job.
    std::function<bool(const JobId& job)> is_reached;
    // Whether an alert of the job is on its way to a receiver.
    std::function<bool(const JobId& job)> is_alerting;
    // A report was beyond a limit: its agent gets no answer.
    std::function<void(Dropped what)> drop;
  };

  using Load = std::function<absl::StatusOr<Continuation>(const JobId& job)>;

  explicit Fleet(FleetOptions options);
  // With another store, and another source of what earlier owners knew.
  Fleet(FleetOptions options, std::unique_ptr<FleetStore> store, Load load);
  ~Fleet() override;
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  // `address`: HOST:PORT by which agents and other daemons reach this one. `page`: its URL; "":
  // none.
  void Start(const std::string& address, const std::string& page, Hooks hooks);
  // What Start() does before its thread begins, and what the thread does ten times a second: for
  // tests.
  void Prepare(const std::string& address, const std::string& page, Hooks hooks);
  void Step();
  // Gives up the lease, so that other daemons take the jobs at once.
  void Stop();

  // The answer comes by Hooks::tell, perhaps at once.
  void Seek(const Report& report) ABSL_LOCKS_EXCLUDED(mutex_);

  bool Owns(const JobId& job) const override ABSL_LOCKS_EXCLUDED(mutex_);
  bool MayAlert(const JobId& job) const override ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t TokenOf(const JobId& job) const override ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsUnproven(const JobId& job) const override ABSL_LOCKS_EXCLUDED(mutex_);

  std::vector<DaemonRow> Daemons() const override ABSL_LOCKS_EXCLUDED(mutex_);
  std::string self() const override { return self_.name; }
  std::optional<DaemonRow> OwnerOf(const std::string& tenant, const std::string& job) const override
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool HoldsLease() const override ABSL_LOCKS_EXCLUDED(mutex_);
  FleetJobs CountJobs() const override ABSL_LOCKS_EXCLUDED(mutex_);
  const std::string& secret() const { return self_.secret; }
  const std::string& incarnation() const { return self_.incarnation; }

 private:
  enum class State : uint8_t {
    kSought,   // an agent waits for the answer
    kOthers,   // another daemon has it, or nobody knows
    kClaimed,  // this daemon has it, and does not know what an earlier owner found out
    kOwned,
    kProvisional,  // taken without the database; then kClaimed
    kLeaving,      // its new owner gets it once all that was written is in the database
  };
  struct Job {
    State state = State::kSought;
    int64_t token = 0;       // of the last ownership; 0: it had none
    bool is_judged = false;  // kClaimed: was kProvisional before
    std::string owner;       // address, for kOthers
    int64_t asked_ns = 0;    // when the database last said so
    int64_t since_ns = 0;    // of kLeaving and kClaimed
    // Whether all is in the database that this daemon wrote while it had the job. Empty: it never
    // had it.
    std::function<bool()> written;
    // by agents, without a pause, while another daemon has it
    int64_t asked_from_ns = 0, asked_last_ns = 0;
    // kOwned: it came because its agents did not reach the daemon it prefers
    int64_t stays_until_ns = 0;
    std::string to;  // of kLeaving: to this daemon; "": to the one that it prefers
    std::map<std::string, Report> waiting;  // by agent
    std::vector<std::string> agents;        // for kLeaving: that report it
  };

  void Run();
  void Renew();
  void SetCutOff(bool is_cut_off) ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteAway(const absl::Status& status);
  void NoteBack();
  bool ReadAlone() const;
  void WriteAlone(bool is_alone);
  void Compare(const std::map<JobId, int64_t>& mine);
  void GiveWay();
  void GiveTo(const std::vector<DaemonRow>& others, const JobId& job);
  void Claim();
  bool HasUnloaded() const;
  void TakeProvisional();
  std::vector<JobId> Loadable(bool* is_late);
  void AdoptClaimed();
  bool GivesUpReading(const JobId& job, const absl::Status& status);
  absl::StatusOr<Continuation> LoadFromDatabase(const JobId& job);
  void RefreshOwners();
  static void NoteAsked(Job* job);
  void WantUnreached();
  void YieldUnreached();
  void BeginLeaving(const JobId& job, const std::string& to);
  void ReleaseUnused();
  bool IsForgotten(const Job& job) const;
  void ForgetOthers();
  void BeginHandOvers();
  void FinishHandOvers();
  void Stay(const JobId& job, const std::vector<std::string>& agents);
  void Answer(const std::string& owner, const std::vector<Report>& waiting);
  void Lose(const JobId& job);
  std::vector<JobId> ToHandOver() const;
  static void SetOthers(const std::string& owner, Job* job);
  void AwaitWrites(const JobId& id);
  bool HasRoomFor(const JobId& job) const ABSL_LOCKS_EXCLUDED(mutex_);
  void AddAgents(const JobId& id, std::vector<std::string>* agents) const;
  bool IsAway() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const FleetOptions options_;
  DaemonRow self_;
  Hooks hooks_;
  StopSignal stop_;
  std::thread thread_;

  // Of the thread.
  const std::unique_ptr<FleetStore> store_;
  const Load load_;
  std::unique_ptr<History> history_;
  int64_t renew_ns_ = 0, owners_ns_ = 0, share_ns_ = 0, give_way_ns_ = 0, want_ns_ = 0;
  int64_t claim_ns_ = 0;    // when to claim again, after a failure; 0: the last claim succeeded
  bool has_loaded_ = true;  // what is known of the last claimed job
  // claimed jobs, and how often what is known of them was unusable
  std::map<JobId, int> unreadable_;
  bool is_alone_on_disk_ = false;
  bool has_compared_ = false;
  // Owned jobs of which the daemon had nothing at the last look, and whether all about them is
  // written.
  std::map<JobId, std::function<bool()>> unused_;
  std::string problem_;  // that was logged last

  mutable Mutex mutex_;  // taken last
  Lease lease_ ABSL_GUARDED_BY(mutex_);
  int64_t away_since_ns_ ABSL_GUARDED_BY(mutex_) = 0;  // 0: the database answers
  bool is_alone_ ABSL_GUARDED_BY(mutex_) = false;      // no other daemon at the last renewal
  bool is_cut_off_ ABSL_GUARDED_BY(mutex_) = false;    // the last renewal failed
  std::map<JobId, Job> jobs_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int64_t> seen_ ABSL_GUARDED_BY(mutex_);  // since when, by incarnation
  std::vector<DaemonRow> daemons_ ABSL_GUARDED_BY(mutex_);
  std::map<JobId, OwnerRow> owners_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rollcall
