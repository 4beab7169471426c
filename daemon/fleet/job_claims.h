// SPDX-License-Identifier: Apache-2.0
// The owner of each job, as far as this daemon sees, and what follows: which jobs it claims, takes,
// gives away and forgets. Pure but for its mutex: the fleet's thread (fleet.h) brings what the
// database contains, and does what is decided here; the options give the time. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "daemon/fleet/fleet_members.h"
#include "daemon/fleet/fleet_options.h"
#include "daemon/fleet/fleet_store.h"
#include "daemon/jobs/ownership.h"

namespace rollcall {

// An agent's report of a job that this daemon does not own.
struct JobReport {
  JobId job;
  std::string agent;           // its id
  bool follows_owners = true;  // else it has one daemon for all jobs
  std::string tenant, name;    // as it reports the job
};

class JobClaims : public JobOwnership {
 public:
  // Tells whether all is in the database that this daemon wrote about a job until some moment. It
  // asks for tokens of jobs: never call it with the mutex of the claims. Empty if it wrote nothing.
  using Written = std::function<bool()>;
  using Reports = std::vector<JobReport>;

  // Both must outlive this.
  JobClaims(const FleetOptions& options, const FleetMembers* members)
      : options_(options), members_(*members) {}

  bool Owns(const JobId& job) const override;
  bool MayAlert(const JobId& job) const override;
  int64_t TokenOf(const JobId& job) const override;
  bool IsUnproven(const JobId& job) const override;
  FleetJobs CountJobs() const override;

  bool HasRoomFor(const JobId& job) const;
  // The address of the daemon that has the job; empty means this one. nullopt means the report
  // waits until that is known.
  std::optional<std::string> Seek(const JobReport& report);

  // The database has answered that these jobs are this daemon's, with these tokens. Returns the
  // jobs that are so no longer.
  std::vector<JobId> Compare(const std::map<JobId, int64_t>& mine, Reports* answered);
  // Returns the jobs to claim in one statement.
  std::vector<JobId> ToClaim() const;
  struct Claimed {
    std::vector<JobId> lost;    // taken without the database, and another daemon has them
    std::vector<JobId> proven;  // taken without the database, and this daemon has them
    std::map<std::string, Reports> answered;  // by the owner's address
  };
  Claimed TakeAnswer(const std::map<JobId, OwnerRow>& owners);
  // The claimed jobs about which the database has all that this daemon found out when it had them
  // before. `is_late`: the database takes long to get that.
  std::vector<JobId> ToLoad(bool* is_late) const;
  // What an earlier owner found out is known: from now on this daemon has the job.
  Reports SetLoaded(const JobId& job);
  // Whether some job is not loaded.
  bool HasUnloaded() const;
  // Somebody must look at the jobs that agents report, although it is unknown whose they are.
  std::map<JobId, Reports> TakeWithoutDatabase();

  std::vector<JobId> Owned() const;
  // All that this daemon has (true) or seeks (false).
  std::map<JobId, bool> OwnedOrSought() const;
  // Another daemon took it.
  void Lose(const JobId& job);
  // It is the daemon's with this address.
  Reports Give(const JobId& job, const std::string& owner);
  // Call it for a job that this daemon has had.
  void AwaitWrites(const JobId& job, Written written);
  void Erase(const JobId& job);
  // Jobs of other daemons that no agent asks for.
  void ForgetOthers();
  void EraseAll();

  // Jobs whose agents keep asking here, although their owner lives: they cannot reach it.
  std::vector<JobId> ToWant() const;
  // Jobs that prefer another one of these daemons; this one is the first.
  std::vector<JobId> ToHandOver(const std::vector<std::string>& sharers) const;
  // `to`: the name of the next daemon; empty means the one that the job prefers. False if it is not
  // owned.
  bool BeginLeaving(const JobId& job, const std::string& to);
  struct Leaving {
    JobId job;
    int64_t token = 0, since_ns = 0;
    std::string to;
    std::vector<std::string> agents;  // that reported it
    Written written;
  };
  void SetAgents(const JobId& job, std::vector<std::string> agents);
  std::vector<Leaving> AllLeaving() const;
  // It does not leave. What this daemon knew of the job comes from the database.
  void Stay(const JobId& job);

 private:
  enum class State : uint8_t {
    kSought,   // an agent waits for the answer
    kOthers,   // another daemon has it, or unknown
    kClaimed,  // this daemon has it, and lacks what an earlier owner found out
    kOwned,
    kProvisional,  // taken without the database; then kClaimed
    kLeaving,      // its new owner gets it once all that was written is in the database
  };
  struct Job {
    State state = State::kSought;
    int64_t token = 0;       // of the last ownership; 0 if it had none
    bool is_judged = false;  // kClaimed: was kProvisional before
    std::string owner;       // address, for kOthers
    int64_t asked_ns = 0;    // when the database last showed it
    int64_t since_ns = 0;    // of kLeaving and kClaimed
    Written written;         // until this daemon lost the job
    // by agents, without a pause, while another daemon has it
    int64_t asked_from_ns = 0, asked_last_ns = 0;
    // kOwned: it came because its agents did not reach the daemon it prefers
    int64_t stays_until_ns = 0;
    std::string to;                            // of kLeaving
    std::map<std::string, JobReport> waiting;  // by agent
    std::vector<std::string> agents;           // of kLeaving

    bool IsSought() const { return state == State::kSought && !waiting.empty(); }
    void AddWaitingTo(Reports* reports);
    void SetOthers(const std::string& address, int64_t now_ns);
    void NoteAsked(int64_t now_ns);
  };
  // One that is not known looks as one that is sought.
  const Job& Find(const JobId& id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<JobId> Those(size_t most, const std::function<bool(const Job&)>& is) const;
  bool IsForgotten(const Job& job) const;

  const FleetOptions& options_;
  const FleetMembers& members_;
  mutable Mutex mutex_;  // taken last, but for that of the members
  std::map<JobId, Job> jobs_ ABSL_GUARDED_BY(mutex_);
  bool has_compared_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace rollcall
