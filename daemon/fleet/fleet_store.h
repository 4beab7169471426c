// SPDX-License-Identifier: Apache-2.0
// What daemons on one PostgreSQL agree on: who lives, and whose each job is. Two tables, `daemons`
// and `owners`, in the schema of the history (postgres_layout.h).
//
// All times are the database's. Its clock must not jump by more than the margin of a lease
// (lease.h): if it jumps ahead, leases end for the others before they end for their holders.
//
// How a daemon may use this without two of them acting for one job:
//   - It counts its lease from before it sends Renew(), and only once Owned() has answered too:
//   while
//     the daemon stood still, others may have taken jobs. It acts for a job only if the last
//     Owned() has it, or a Claim() since.
//   - Before it sends HandOver(), Release() or Leave() it stops acting: the answer may be lost.
//   - A Renew() or Claim() whose answer is lost may still take effect later: the next Owned()
//   tells. A
//     HandOver() or Release() whose answer is lost takes no effect any more once Owned() or Claim()
//     has answered.
//
// Blocking, for about 2 s for each statement and 4 s to connect; for one thread. Opens its
// connection on demand, and another one after an error: each call may fail with kUnavailable, and
// the next may succeed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/fleet/daemon_row.h"
#include "daemon/history/postgres_options.h"
#include "daemon/model/job_key.h"

namespace rollcall {

struct OwnerRow {
  std::string daemon, address;  // name, and where it is
  // The token of the ownership. A later owner has a higher one; the same daemon keeps it when it
  // starts again.
  int64_t token = 0;
  bool is_mine = false;      // the asking daemon's, of this start
  int64_t lives_for_ns = 0;  // what is left of the owner's lease
  bool is_wanted = false;    // it has the job because its agents did not reach the owner before
};

class FleetStore {
 public:
  // Waits shorter than the options. Does not connect.
  static std::unique_ptr<FleetStore> Make(PostgresOptions options);
  virtual ~FleetStore() = default;

  // Renews the lease of `self` for so long from now, or begins it. Returns the living daemons, self
  // included. What an earlier start of this daemon owned belongs to this one.
  //
  // kFailedPrecondition: another start of a daemon has this name and lives; says what to type. It
  // may be this daemon's own earlier one, whose lease ends soon.
  virtual absl::StatusOr<std::vector<DaemonRow>> Renew(const DaemonRow& self, int64_t lease_ns) = 0;

  // Claims those of the jobs that no daemon has, or whose owner's lease is over. Returns the living
  // owner of each job after that. One that is missing has none yet, because the owner's lease, or
  // that of `self`, has ended in this moment: ask again.
  virtual absl::StatusOr<std::map<JobId, OwnerRow>> Claim(const DaemonRow& self,
                                                          const std::vector<JobId>& jobs) = 0;

  // The jobs of `self`, of this start, with their tokens.
  virtual absl::StatusOr<std::map<JobId, int64_t>> Owned(const DaemonRow& self) = 0;

  // All jobs whose owner lives. `is_mine` is always false.
  virtual absl::StatusOr<std::map<JobId, OwnerRow>> Owners() = 0;

  // Gives the job to another living daemon. kAborted: `self` does not have it by this token, or the
  // other one does not live.
  virtual absl::Status HandOver(const DaemonRow& self, const JobId& job, int64_t token,
                                const DaemonRow& to) = 0;

  // Agents ask `self` for these jobs, because they cannot reach the owner.
  virtual absl::Status Want(const DaemonRow& self, const std::vector<JobId>& jobs) = 0;

  // The jobs of `self`, of this start, that another daemon has wanted in the last five seconds: its
  // name. Not those that it wanted before `self` was there or had them, and for the four seconds
  // after.
  virtual absl::StatusOr<std::map<JobId, std::string>> Wanted(const DaemonRow& self) = 0;

  // No agent reports these jobs any more: those of them that are self's have no owner now.
  virtual absl::Status Release(const DaemonRow& self, const std::vector<JobId>& jobs) = 0;

  // Ends the lease at once: others may claim the jobs now.
  virtual absl::Status Leave(const DaemonRow& self) = 0;
};

}  // namespace rollcall
