// SPDX-License-Identifier: Apache-2.0
// This daemon among several on one database: its lease, the jobs that it owns, and where the others
// are.
//
// A job has one owner. The daemon claims a job when an agent reports it; it takes the job's ticks
// once it has the job and has what an earlier owner has found out. A job of another daemon is
// redirected. A daemon that has lost a job, because it stood still or was cut off, drops it without
// an alert.
//
// While the database does not answer, the daemon keeps its jobs, and takes new ones for the time
// being: it detects. Its alerts go out if no other daemon was there at the last renewal; else they
// wait until it can prove that no other daemon has the job. If another one still reaches the
// database, the jobs go there as soon as this daemon's lease is over. A job whose agents reach
// another daemon, and not this one, goes there, too.
//
// FleetMembers and JobClaims decide; the thread here asks the database and the daemon, and does
// what they decide. All calls but Stop() are quick, from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "base/stop_signal.h"
#include "daemon/fleet/alone_file.h"
#include "daemon/fleet/earlier_owners.h"
#include "daemon/fleet/fleet_members.h"
#include "daemon/fleet/fleet_options.h"
#include "daemon/fleet/fleet_store.h"
#include "daemon/fleet/job_claims.h"
#include "daemon/fleet/job_holder.h"
#include "daemon/history/history.h"

namespace rollcall {

class Fleet {
 public:
  explicit Fleet(FleetOptions options);
  // Makes a fleet with another store, and another source of what earlier owners knew.
  Fleet(FleetOptions options, std::unique_ptr<FleetStore> store, EarlierOwners::Load load);
  ~Fleet();

  // `address`: HOST:PORT by which agents and other daemons reach this one. `page`: its URL, or
  // empty.
  void Start(const std::string& address, const std::string& page, JobHolder* holder);
  // What Start() does before its thread begins, and what the thread does ten times a second: for
  // tests.
  void Prepare(const std::string& address, const std::string& page, JobHolder* holder);
  void Step();
  // Gives up the lease, so that other daemons take the jobs at once.
  void Stop();

  // The answer comes by JobHolder::Tell(), perhaps at once. False if there are too many jobs, and
  // no answer comes.
  bool Seek(const JobReport& report);

  const FleetMembers& members() const { return members_; }
  const JobClaims& claims() const { return claims_; }

 private:
  struct DueTimes {
    int64_t renew = 0, owners = 0, share = 0, give_way = 0, want = 0;
    int64_t claim = 0;  // again, after a failure; 0 if the last claim succeeded
  };

  void Run();
  bool IsDue(int64_t due_ns) const { return options_.now_ns() >= due_ns; }
  void Renew();
  void NoteAway(const absl::Status& status);
  void NoteBack();
  void GiveWay();
  void Claim();
  void TakeWithoutDatabase();
  void AdoptClaimed();
  void LookAtOwners();
  void ReleaseUnused();
  void BeginLeaving(const JobId& job, const std::string& to);
  void FinishLeaving();
  bool Finish(const JobClaims::Leaving& job);
  void Lose(const JobId& job);
  void Answer(const std::string& owner, const JobClaims::Reports& waiting);
  std::vector<std::string> AgentsAround(const JobId& job,
                                        const std::function<void()>& change) const;

  const FleetOptions options_;
  AloneFile alone_file_;  // only the thread uses it, after the construction
  FleetMembers members_;
  JobClaims claims_;
  JobHolder* holder_ = nullptr;
  StopSignal stop_;
  std::thread thread_;

  // Only the thread uses these.
  const std::unique_ptr<FleetStore> store_;
  EarlierOwners earlier_owners_;
  DueTimes due_;
  bool has_loaded_ = true;  // what is known of the last claimed job
  // Owned jobs of which the daemon had nothing at the last look, and whether all about them is
  // written.
  std::map<JobId, JobClaims::Written> unused_;
  std::string problem_;  // that was logged last
};

}  // namespace rollcall
