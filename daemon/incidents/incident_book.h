// SPDX-License-Identifier: Apache-2.0
// The incidents of all jobs: their life, their stacks, their reports and alerts, and the lists that
// people see.
//
// A restarted daemon continues: the book restores the open incidents, the alerts and the hosts of
// each job from the history. While a job's hosts have not all reported again, for kReturnWithinNs
// at most, nothing of the job is opened, confirmed or closed. Afterwards nothing is certain until
// the missing hosts have reported.
//
// The diagnosing thread applies its verdicts (Apply) and passes changes on (Publish). Any thread
// may add stacks and read. Owns the incidents, and the writers of reports, history and alerts, each
// with its own threads: only these threads wait for a disk or the network.
//
// Locks: one mutex. A thread may hold a job's mutex in JobStore when it takes this one (Apply),
// never the other way round. The mutexes of ReportQueue, HistoryKeeper, AlertSender and Timeline
// come after it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "daemon/agents/stack_request.h"
#include "daemon/alerts/alerts.h"
#include "daemon/diagnosis/incident_life.h"
#include "daemon/history/history_keeper.h"
#include "daemon/incidents/alert_folds.h"
#include "daemon/incidents/alert_hold.h"
#include "daemon/incidents/awaited_stacks.h"
#include "daemon/incidents/host_hangs_desk.h"
#include "daemon/incidents/host_labels.h"
#include "daemon/incidents/incident_counts.h"
#include "daemon/incidents/incident_quota.h"
#include "daemon/incidents/incident_stacks.h"
#include "daemon/incidents/report_queue.h"
#include "daemon/incidents/silences.h"
#include "daemon/jobs/daemon_counters.h"
#include "daemon/jobs/job_store.h"
#include "daemon/jobs/known_hosts.h"
#include "daemon/jobs/ownership.h"
#include "daemon/jobs/timeline.h"
#include "daemon/report/stacks/stack_tree.h"
#include "rollcall/v1/incident.pb.h"
#include "rollcall/v1/query.pb.h"

namespace rollcall {

struct IncidentBookOptions {
  Limits limits;
  std::string report_dir;  // folder of reports; "" for no reports on disk
  ReportLimits keep_reports;
  HistoryKeeperOptions history;
  AlertOptions alerts;
  IncidentQuotaLimits quota;
  HostLabels host_labels;
  bool log_incidents = true;
  int64_t alert_waits_ns = kAlertWaitsNs;  // for the first stacks
  // From an alert of a hang that lasts to the next one, until somebody acknowledges it; 0: none.
  int64_t remind_every_ns = 0;
  // outlives the book; nullptr: all jobs are this daemon's
  const JobOwnership* ownership = nullptr;
};

// How long a restarted daemon waits for a job's hosts, and for a job with an open incident.
inline constexpr int64_t kReturnWithinNs = 30'000'000'000;
inline constexpr int64_t kJobReturnsWithinNs = 600'000'000'000;
inline constexpr int64_t kBeganNow = INT64_MAX;

// A summary of a job's incidents.
struct JobBrief {
  struct Live {
    std::string id;
    bool is_confirmed = false;
    std::string summary;
    std::vector<int32_t> culprits;  // ranks
    int64_t opened_ns = 0;
  };
  std::vector<std::string> warnings;  // sentences about a job that does not hang
  std::optional<v1::IncidentSummary> last;
  std::optional<Live> live;
};

class IncidentBook {
 public:
  // `timeline` and `counters` must outlive this object. `counters`: counts what exceeds the quota;
  // nullptr: nobody counts.
  IncidentBook(IncidentBookOptions options, Timeline* timeline, DaemonCounters* counters = nullptr);

  // Opens the history. Returns kUnavailable, with the reason, if it is unusable. Call it once,
  // before all below.
  absl::Status Start();

  // Applies the verdicts of one diagnosis. Returns the stack requests that follow from them.
  // `began_ns`: when the job began; kBeganNow: no earlier daemon had it.
  std::vector<StackRequest> Apply(const JobState& state, std::vector<Verdict> verdicts,
                                  int64_t now_ns, int64_t began_ns = kBeganNow)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether the next diagnosis of the job may change its incidents, even if the job does not
  // change: one is live, or the job's hosts have not all returned.
  bool NeedsDiagnosis(const JobKey& job) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Removes the job's incidents from memory. The history keeps them. Ends a live incident: no agent
  // has reported its job for long. The next Publish() writes the end to the reports.
  void Forget(const JobKey& job, int64_t now_ns) ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes over a job from another daemon, with what that one has stored. It goes on as after a
  // restart. An incident of this daemon that nobody knows of, because the job was unproven, gives
  // way to the stored one: both are about the same hang.
  void Adopt(const JobId& job, Continuation from_earlier) ABSL_LOCKS_EXCLUDED(mutex_);
  // The job is proven to be this daemon's: what it found out before may be stored.
  void StoreProven(const JobId& job) ABSL_LOCKS_EXCLUDED(mutex_);
  // Another daemon has the job: removes all of it from memory. Nothing ends, and no alert goes out.
  void Release(const JobId& job) ABSL_LOCKS_EXCLUDED(mutex_);
  // The same, unless the job has come back meanwhile: for a thread that finds out late.
  void ReleaseUnowned(const JobId& job) ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes the job although nobody can say which numbers its incidents have: uses the time instead.
  void AvoidNumbersOfOthers(const JobId& job) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether many writes wait for the history or its database.
  bool HasBacklog() const;
  // Whether an incident of the job is in memory.
  bool HasJob(const JobId& job) const ABSL_LOCKS_EXCLUDED(mutex_);
  // As HistoryKeeper::Barrier(): whether all that was stored before this call is in the database.
  std::function<bool()> StoredBarrier() const;
  // Whether an alert of the job is on its way to a receiver.
  bool IsAlerting(const JobId& job) const;
  // Passes changes to the writers of reports and history, and records the reports that were
  // written.
  void Publish() ABSL_LOCKS_EXCLUDED(mutex_);

  // The attempts that an earlier daemon recorded; once, as soon as the history is open.
  std::map<JobKey, AttemptFacts> ConsumeAttempts() ABSL_LOCKS_EXCLUDED(mutex_);
  // SaveAttempts() must get these: all once after a new file replaced the history, and those of a
  // job that was adopted.
  AttemptsToSave ConsumeAttemptsToSave() ABSL_LOCKS_EXCLUDED(mutex_);
  void SaveAttempts(const AttemptChanges& changes) ABSL_LOCKS_EXCLUDED(mutex_);
  // For the history only.
  void SaveAction(const ActionRow& action);

  void SetQuota(const IncidentQuotaLimits& limits) ABSL_LOCKS_EXCLUDED(mutex_);
  // Of incidents from now on.
  void SetHostLabels(HostLabels labels) ABSL_LOCKS_EXCLUDED(mutex_);

  // From now on no report waits for stacks, because no more will come.
  void BeginStop() ABSL_LOCKS_EXCLUDED(mutex_);
  // Gives the writers of reports, history and alerts some seconds from `begun` on, all at the same
  // time, and ends their threads. Does nothing if Start() failed or was not called.
  void Finish(SteadyTime begun) ABSL_LOCKS_EXCLUDED(mutex_);

  // Adds the reply for one process of an incident's stack request, or the reason why there is none.
  // Returns how the process moved since its previous sample; nullopt if the sample must not be
  // judged.
  std::optional<StackChange> AddStack(const StackResult& result) ABSL_LOCKS_EXCLUDED(mutex_);

  // Adds what a host of the incident showed.
  void AddHostFacts(const JobKey& job, const std::string& incident, const v1::HostFacts& facts)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds what the GPU of a rank did.
  void AddGpuDump(const JobKey& job, const std::string& incident, const v1::GpuDump& dump)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Incidents since the start, of one job or of all jobs for "", oldest first.
  std::vector<v1::Incident> All(const std::string& job) const ABSL_LOCKS_EXCLUDED(mutex_);
  // What comes back; of what the history has. Hangs that last cost what they cost now. `newer`: as
  // of List(). `who`: the caller, who has a share of the questions.
  absl::StatusOr<v1::CountIncidentsResponse> CountIncidents(
      const v1::CountIncidentsRequest& request, const std::vector<v1::Incident>& newer = {},
      const std::string& who = "") const ABSL_LOCKS_EXCLUDED(mutex_);
  // Includes the history. If it is unreadable, a note in the response says so. `newer`: incidents
  // of other daemons, in a newer state than the history's.
  absl::StatusOr<v1::ListIncidentsResponse> List(const v1::ListIncidentsRequest& request,
                                                 std::vector<v1::Incident> newer = {}) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Includes the history. kNotFound says how to list the incidents.
  absl::StatusOr<v1::Incident> Get(const std::string& id) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Changes an incident as a person asks, and stores it. `change` runs under the book's mutex: it
  // must be quick, and its error is returned. kNotFound as Get(); other errors of the history as
  // well.
  absl::Status Change(const std::string& id,
                      const std::function<absl::Status(v1::Incident*)>& change)
      ABSL_LOCKS_EXCLUDED(changing_, mutex_);

  // Holds back alerts for a time; stored. Errors as of Silences.
  absl::StatusOr<v1::Silence> AddSilence(const v1::Silence& wanted, int64_t seconds,
                                         const std::string& who, const Tenants& tenants)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<v1::Silence> EndSilence(const std::string& id, const Tenants& tenants)
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<v1::Silence> ListSilences(const Tenants& tenants) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes over what other daemons on the same database have begun or ended. Waits for the history,
  // some seconds at most; without its answer nothing changes.
  void RefreshSilences() ABSL_LOCKS_EXCLUDED(mutex_);

  // What people did outlives the daemon once they have its answer: waits until all of the above is
  // in the history, or for two seconds if its disk is slow.
  void AwaitSaved() ABSL_LOCKS_EXCLUDED(mutex_);

  // The confirmed hangs for which hosts are blamed (BlameHost()), by host: those about which this
  // daemon may alert, and whose jobs it has diagnosed itself.
  HangsByHost BlamedHosts() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The attempts with an open incident.
  std::set<JobKey> OpenJobs() const ABSL_LOCKS_EXCLUDED(mutex_);
  JobBrief Brief(const JobKey& job) const ABSL_LOCKS_EXCLUDED(mutex_);
  IncidentCounts CountIncidents(const JobKey& job, int64_t now_ns) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  DeliveryCounts CountDeliveries() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Hosts that jobs of an earlier daemon had, and that have not come back.
  size_t CountKnownHosts() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Grows with every change of the job's incidents.
  uint64_t Changes(const JobKey& job) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Grows with every change of any incident, and when the book forgets a job.
  uint64_t Changes() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Record {  // an incident as people see it
    v1::Incident incident;
    std::string folder;           // folder of its report; "" while there is none
    bool dirty = false;           // the report is older than the incident
    bool is_in_queue = false;     // ReportQueue has it, and has not reported a result
    bool unsaved = false;         // the history is older than the incident
    bool has_new_stacks = false;  // no verdict rests on its newest stacks yet
    bool is_over_quota = false;   // neither stored nor reported, and gone when it closes
    bool is_announced = false;    // this daemon has sent its first alert
    bool is_alert_due = false;    // its first alert waits for stacks
    int64_t confirmed_ns = 0;     // by this daemon
    int64_t said_ns = 0;          // the newest alert that asks somebody to act
    AwaitedStacks awaited;        // requested and not yet received
    StackTree rest;               // merged stacks of processes that the incident does not list
  };
  struct Draft {  // of a report, while its stacks are merged without the mutex
    JobKey job;
    v1::Incident incident;
    std::string folder;
    StackTree rest;
    bool is_last = false;  // the book has forgotten the job
  };
  struct JobIncidents {
    JobIncidents(const JobKey& job, int incidents_before) : key(job), life(job, incidents_before) {}
    const JobKey key;
    IncidentLife life;
    KnownHosts hosts;
    int64_t restored_ns = 0;      // when the daemon took it from the history
    bool has_returned = false;    // diagnosed by this daemon
    bool is_end_judged = false;   // an earlier daemon reported the end of the job
    bool is_abandoned = false;    // no agent has reported it for long
    bool has_made_calls = false;  // a rank has come through one
    // An earlier daemon confirmed the live incident. It may have ended before it saved the alert.
    bool may_lack_alert = false;
    v1::Incident last_closed;           // the newest of an earlier daemon, without stacks
    std::set<uint64_t> judged_ends;     // communicators whose end was judged
    std::vector<std::string> warnings;  // sentences
    std::vector<Record> records;
    int32_t ranks = 0;  // of the job, as far as known
    uint64_t changes = 0;
    std::map<std::string, int> by_cause;
    std::map<std::string, double> hung_seconds;  // in confirmed and closed ones, by cause
  };

  void Restore() ABSL_LOCKS_EXCLUDED(mutex_);
  void Drop(const JobId& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RestoreJobs(Continuation* stored, int64_t restored_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RestoreIncident(v1::Incident incident, int64_t now_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndAbandoned() ABSL_LOCKS_EXCLUDED(mutex_);
  void Abandon(JobIncidents* job, int64_t now_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool AwaitsHosts(const JobIncidents& job, int64_t now_ns) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string WhatIsNotSeen(const JobState& state, const JobIncidents& job, int64_t began_ns) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SaveHosts(const JobState& state, JobIncidents* job, int64_t now_ns)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<Verdict> Prepare(const JobState& state, std::vector<Verdict> verdicts,
                               const std::string& not_seen, JobIncidents* job)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WeakenStored(const std::string& line, JobIncidents* job)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AvoidUnknownNumbers(JobIncidents* job, int64_t now_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  JobIncidents* Open(const JobKey& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static std::vector<Verdict> SetWarnings(std::vector<Verdict> verdicts, JobIncidents* job);
  static void Count(const IncidentEvent& event, JobIncidents* job);
  void Act(const IncidentEvent& event, JobIncidents* job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static Record* FindRecord(const std::string& incident, JobIncidents* job);
  void Rewrite(const IncidentEvent& event, Record* record);
  void AddExtent(const IncidentEvent& event, const JobIncidents& job, Record* record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ApplyQuota(const IncidentEvent& event, const JobIncidents& job, Record* record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropOverQuota(const IncidentEvent& event, JobIncidents* job);
  bool MayAlert(const JobIncidents& job, Record* record, int64_t now_ns)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsSilenced(const JobIncidents& job, Record* record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HoldBack(const v1::Silence& silence) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SendHeldBack() ABSL_LOCKS_EXCLUDED(mutex_);
  void SendUnsilenced() ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t WallNow() const;
  void Store(Record* record);
  void StoreIfItLasts(const JobIncidents& job, Record* record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountDropped(Dropped what);
  void Alert(const IncidentEvent& event, JobIncidents* job, Record* record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HoldsFirst(const Record& record, int64_t now_ns) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SendFirst(JobIncidents* job, Record* record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Announce(JobIncidents* job, Record* record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void JoinRow(const JobIncidents& job, Record* record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Record* FindInJob(const JobId& job, const std::string& incident)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ShareAcknowledgement(const v1::Incident& first) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Say(const Record& record, AlertEvent event);
  void CloseEarlierAttempts(const JobId& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GoOnIn(int32_t attempt, JobIncidents* job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasLaterAttempt(const JobKey& key) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SayEnd(const JobIncidents& job, const Record& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SayWhatIsNew(bool has_new_stacks, JobIncidents* job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SendDueFirst(bool all) ABSL_LOCKS_EXCLUDED(mutex_);
  void SendDueEnds(int64_t until_ns) ABSL_LOCKS_EXCLUDED(mutex_);
  void SendReminders() ABSL_LOCKS_EXCLUDED(mutex_);
  std::string LaterHang(const v1::Incident& incident) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SendLackingAlert(const std::vector<Verdict>& verdicts, JobIncidents* job)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SaveNow(Record* record);
  Incident WithWallTimes(Incident incident);
  bool AwaitsStacks(const Record& record) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetPending(const JobIncidents& job, const Record& record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetAllUnsaved() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PublishPending() ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<Draft> PublishRecords() ABSL_LOCKS_EXCLUDED(mutex_);
  bool PublishRecord(const JobIncidents& job, Record* record, std::vector<Draft>* drafts)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddDraft(const JobIncidents& job, Record* record, std::vector<Draft>* drafts)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DraftLast(JobIncidents* job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteReport(Draft draft) ABSL_LOCKS_EXCLUDED(mutex_);
  void RecordReport(const ReportQueue::Result& result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RecordProblem(Record* record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the verdicts grow without an event.
  static bool Grows(const JobIncidents& job, const v1::Incident& incident);
  // Takes the verdicts of a live incident as they are now. `with_stacks` is the whole incident.
  static void RefreshVerdicts(const JobIncidents& job, const v1::Incident& with_stacks,
                              v1::Incident* incident);
  static v1::Incident AsOfNow(const JobIncidents& job, const v1::Incident& incident,
                              bool with_stacks);
  v1::ListIncidentsResponse ListIncidents(const v1::ListIncidentsRequest& request,
                                          std::vector<v1::Incident> newer) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<v1::Incident> Find(const std::string& id) const ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<v1::Incident> ListOpen(bool with_stacks) const ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<v1::Incident> ListSelected(const v1::ListIncidentsRequest& request) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  const IncidentBookOptions options_;
  Timeline* const timeline_;
  DaemonCounters* const counters_;
  std::unique_ptr<HistoryKeeper> history_;
  std::unique_ptr<ReportQueue> reports_;
  std::unique_ptr<AlertSender> alerts_;

  Mutex changing_;  // of Change(), before mutex_
  mutable Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t started_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  // False: the history, which has the hosts of an earlier daemon's jobs, is not readable yet.
  bool knows_hosts_ ABSL_GUARDED_BY(mutex_) = true;
  std::map<JobKey, JobIncidents> jobs_ ABSL_GUARDED_BY(mutex_);
  IncidentQuota quota_ ABSL_GUARDED_BY(mutex_);
  AlertFolds folds_ ABSL_GUARDED_BY(mutex_);
  std::set<JobKey> restartable_ ABSL_GUARDED_BY(mutex_);  // started by launchers that restart jobs
  HostLabels host_labels_ ABSL_GUARDED_BY(mutex_);
  Silences silences_ ABSL_GUARDED_BY(mutex_);
  // Incidents whose alerts a silence holds back, with the ids of the silences that have counted
  // them or need not. Some may be over, or gone.
  std::map<std::pair<JobKey, std::string>, std::set<std::string>> silenced_ ABSL_GUARDED_BY(mutex_);
  uint64_t alerts_silenced_ ABSL_GUARDED_BY(mutex_) = 0;
  // Incidents that Publish() has work for. Some may have gone.
  std::set<std::pair<JobKey, std::string>> pending_ ABSL_GUARDED_BY(mutex_);
  // Reports of forgotten jobs, for the next Publish(). The publishing thread alone gives reports to
  // the queue: otherwise an older state of a report might follow the last one.
  std::vector<Draft> last_drafts_ ABSL_GUARDED_BY(mutex_);
  // Restored jobs that this daemon has not diagnosed yet.
  std::set<JobKey> awaited_ ABSL_GUARDED_BY(mutex_);
  std::set<JobId> adopted_ ABSL_GUARDED_BY(mutex_);  // by Adopt(), and not yet this daemon's
  std::map<JobKey, AttemptFacts> attempts_ ABSL_GUARDED_BY(mutex_);  // restored
  AttemptsToSave attempts_to_save_ ABSL_GUARDED_BY(mutex_);
  uint64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;  // counts changes of incidents, and forgotten jobs
};

}  // namespace rollcall
