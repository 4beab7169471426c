// SPDX-License-Identifier: Apache-2.0
// The daemons on one database as this one sees them: who lives, who owns which job, whether this
// one holds its lease, and whether the database answers. Pure but for its mutex: the fleet's thread
// (fleet.h) brings what the database contains, and the options give the time. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "daemon/fleet/fleet_options.h"
#include "daemon/fleet/fleet_store.h"
#include "daemon/fleet/fleet_view.h"
#include "daemon/fleet/lease.h"

namespace rollcall {

class FleetMembers : public FleetView {
 public:
  // The options must outlive this. `is_alone`: there was no other daemon before.
  FleetMembers(const FleetOptions& options, bool is_alone);

  // This daemon. It gets its address before the fleet's thread starts.
  const DaemonRow& row() const { return self_; }
  void SetAddress(const std::string& address, const std::string& page);

  std::vector<DaemonRow> Daemons() const override;
  std::string self() const override { return self_.name; }
  std::optional<DaemonRow> OwnerOf(const std::string& tenant,
                                   const std::string& job) const override;
  bool HoldsLease() const override;

  // The last renewal found no other daemon.
  bool IsAlone() const;
  // This daemon may alert for a job that it has, as no other can have the job.
  bool MayAlert(bool is_owned) const;

  // A renewal that was sent at this time has found these daemons.
  void Renewed(int64_t asked_ns, std::vector<DaemonRow> daemons);
  // Whether the database has not answered the last renewal.
  void SetCutOff(bool is_cut_off);
  void SetOwners(std::map<JobId, OwnerRow> owners);
  void EndLease();

  // The database does not answer, or takes nothing; and it is well again.
  void SetAway();
  void SetBack();
  bool HasDatabase() const;
  // It has been away for so long that jobs must be taken without it.
  bool MustTakeJobs() const;
  // The other daemons, once they may have this one's jobs because it could not renew its lease.
  std::vector<DaemonRow> Heirs() const;

  // The addresses of the daemons among which jobs are shared: this one's first.
  std::vector<std::string> Sharers() const;
  // The daemon of this name, or the one that the job prefers; nullopt if there is none yet.
  std::optional<DaemonRow> NextFor(const JobId& job, const std::string& name) const;

 private:
  const FleetOptions& options_;
  DaemonRow self_;
  mutable Mutex mutex_;  // taken last
  Lease lease_ ABSL_GUARDED_BY(mutex_);
  int64_t away_since_ns_ ABSL_GUARDED_BY(mutex_) = 0;  // 0 if the database answers
  bool is_alone_ ABSL_GUARDED_BY(mutex_);
  bool is_cut_off_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<DaemonRow> daemons_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int64_t> seen_ ABSL_GUARDED_BY(mutex_);  // since when, by incarnation
  std::map<JobId, OwnerRow> owners_ ABSL_GUARDED_BY(mutex_);
};

// Among daemons with these addresses the job prefers one: its index.
const DaemonRow& PreferredOf(const std::vector<DaemonRow>& daemons, const JobId& job);

}  // namespace rollcall
