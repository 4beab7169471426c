// SPDX-License-Identifier: Apache-2.0
// The fleet's tables. Each statement commits by itself, and sees what was committed before it
// began. So a statement that takes jobs from a daemon locks that daemon's row first: a renewal that
// commits meanwhile is seen, and one that comes later waits, and the Owned() after it sees what was
// taken.
#include <algorithm>
#include <chrono>
#include <functional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/durations.h"
#include "daemon/fleet/fleet_statements.h"
#include "daemon/fleet/fleet_store.h"
#include "daemon/history/postgres_database.h"
#include "daemon/history/postgres_layout.h"
#include "daemon/history/sql.h"

namespace rollcall {
namespace {

// A thread that waits for the database must renew a lease meanwhile.
constexpr PostgresTimes kMostTimes = {std::chrono::seconds(2), std::chrono::seconds(2),
                                      std::chrono::seconds(1), std::chrono::seconds(2)};
// A connection that turns out to be dead within this time is replaced at once.
constexpr std::chrono::milliseconds kDeadAtOnce{500};

// A text of type text[], in PostgreSQL's own writing.
std::string ArrayOf(const std::vector<JobId>& jobs, const std::string& (*text)(const JobId&)) {
  std::string array = "{";
  for (const JobId& job : jobs) {
    absl::StrAppend(&array, array.size() > 1 ? "," : "", "\"",
                    absl::StrReplaceAll(text(job), {{"\\", "\\\\"}, {"\"", "\\\""}}), "\"");
  }
  return array + "}";
}
std::string TenantsOf(const std::vector<JobId>& jobs) {
  return ArrayOf(jobs, [](const JobId& job) -> const std::string& { return job.tenant; });
}
std::string JobsOf(const std::vector<JobId>& jobs) {
  return ArrayOf(jobs, [](const JobId& job) -> const std::string& { return job.job; });
}

class PostgresFleet : public FleetStore {
 public:
  explicit PostgresFleet(PostgresOptions options) : options_(std::move(options)) {
    PostgresTimes& times = options_.times;
    times.connect = std::min(times.connect, kMostTimes.connect);
    times.answer = std::min(times.answer, kMostTimes.answer);
    times.lock = std::min(times.lock, kMostTimes.lock);
    times.pause = std::min(times.pause, kMostTimes.pause);
  }

  absl::StatusOr<std::vector<DaemonRow>> Renew(const DaemonRow& self, int64_t lease_ns) override;
  absl::StatusOr<std::map<JobId, OwnerRow>> Claim(const DaemonRow& self,
                                                  const std::vector<JobId>& jobs) override;
  absl::StatusOr<std::map<JobId, int64_t>> Owned(const DaemonRow& self) override;
  absl::StatusOr<std::map<JobId, OwnerRow>> Owners() override;
  absl::Status HandOver(const DaemonRow& self, const JobId& job, int64_t token,
                        const DaemonRow& to) override;
  absl::Status Want(const DaemonRow& self, const std::vector<JobId>& jobs) override;
  absl::StatusOr<std::map<JobId, std::string>> Wanted(const DaemonRow& self) override;
  absl::Status Release(const DaemonRow& self, const std::vector<JobId>& jobs) override;
  absl::Status Leave(const DaemonRow& self) override;

 private:
  absl::Status Connect(const std::string& incarnation);
  absl::Status Try(const DaemonRow& self, const std::function<absl::Status()>& run);
  absl::Status RenewRow(const DaemonRow& self, int64_t lease_ns);
  absl::Status Clash(const DaemonRow& self);
  absl::Status ListLiving(std::vector<DaemonRow>* daemons);
  absl::Status ClaimFree(const DaemonRow& self, const std::vector<JobId>& jobs);
  absl::Status ReadOwners(const DaemonRow& self, const std::vector<JobId>& jobs,
                          std::map<JobId, OwnerRow>* owners);
  absl::Status GiveUp(const DaemonRow& self, const std::vector<JobId>& jobs,
                      const std::function<absl::Status(int64_t now_us)>& run);
  absl::Status Settle(const DaemonRow& self);

  PostgresOptions options_;
  // The jobs that self may have given up: the answer did not come.
  std::set<JobId> unsettled_;
  std::unique_ptr<PostgresDatabase> db_;
  bool has_row_ = false;  // this start of the daemon had the row of its name
};

absl::Status Prune(SqlDatabase* db) {
  for (const char* text : kPruneFleet) {
    const absl::Status status = Sql(db, text).Run();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status PostgresFleet::Connect(const std::string& incarnation) {
  auto db = PostgresDatabase::Connect(options_.url, options_.times);
  if (!db.ok()) return db.status();
  absl::Status status = UseSchema(db->get()).status();
  if (status.ok()) status = Migrate(db->get());
  if (status.ok()) status = NoteStart(db->get(), incarnation);
  if (status.ok()) status = Prune(db->get());
  if (!status.ok()) return status;
  db_ = *std::move(db);
  return absl::OkStatus();
}

// All requests may run twice: the second one finds what the first one did.
absl::Status PostgresFleet::Try(const DaemonRow& self, const std::function<absl::Status()>& run) {
  while (true) {
    const bool is_new = db_ == nullptr;
    if (is_new) {
      const absl::Status status = Connect(self.incarnation);
      if (!status.ok()) return status;
    }
    const auto begun = std::chrono::steady_clock::now();
    const absl::Status status = run();
    if (!absl::IsUnavailable(status)) return status;
    db_ = nullptr;
    if (is_new || std::chrono::steady_clock::now() - begun > kDeadAtOnce) return status;
  }
}

// A daemon that starts again at the address of the living one of its name takes the row at once:
// two cannot listen there, so the earlier one has ended without Leave(). At another address it may
// be a second daemon, or the earlier one on a host that is cut off: then it waits for the lease. A
// daemon that had the row and lost it never takes it back from a living one, so that two of one
// name and address do not take turns.
absl::Status PostgresFleet::RenewRow(const DaemonRow& self, int64_t lease_ns) {
  Sql sql(db_.get(), kRenewDaemon, self.name, self.address, self.page, self.incarnation,
          self.secret, lease_ns / 1000, int64_t{has_row_}, self.incarnation, self.incarnation);
  if (sql.Next()) {
    has_row_ = true;
    return absl::OkStatus();
  }
  return sql.status().ok() ? Clash(self) : sql.status();
}

absl::Status PostgresFleet::Clash(const DaemonRow& self) {
  Sql row(db_.get(), kDaemonOfName, self.name);
  if (!row.Next()) {
    return row.status().ok() ? absl::UnavailableError("the row of this daemon's name has just gone")
                             : row.status();
  }
  const int64_t left_s = std::max<int64_t>(row.Integer(1), 0) / kSecond + 1;
  return absl::FailedPreconditionError(absl::StrCat(
      "another daemon has the name ", self.name, " in this database: ", row.Bytes(0), ", for ",
      left_s,
      " s at least\n  give this one a name of its own:  --daemon-name=NAME   (if the other one has "
      "just "
      "ended: this one takes its place in ",
      left_s, " s)"));
}

absl::Status PostgresFleet::ListLiving(std::vector<DaemonRow>* daemons) {
  Sql rows(db_.get(), kLivingDaemons);
  while (rows.Next()) {
    daemons->push_back({rows.Bytes(0), rows.Bytes(1), rows.Bytes(2), rows.Bytes(3), rows.Bytes(4),
                        rows.Integer(5), rows.Integer(6)});
  }
  return rows.status();
}

absl::StatusOr<std::vector<DaemonRow>> PostgresFleet::Renew(const DaemonRow& self,
                                                            int64_t lease_ns) {
  std::vector<DaemonRow> daemons;
  const absl::Status status = Try(self, [&] {
    daemons.clear();
    const absl::Status renewed = RenewRow(self, lease_ns);
    return renewed.ok() ? ListLiving(&daemons) : renewed;
  });
  if (!status.ok()) return status;
  return daemons;
}

// `wanted` leaves out what is certainly another's or self's already. `ended` locks the leases that
// are over, before any row of `owners` is locked: RenewRow() has the same order. Self's own row is
// locked too, so that no later start of this daemon takes its jobs meanwhile.
absl::Status PostgresFleet::ClaimFree(const DaemonRow& self, const std::vector<JobId>& jobs) {
  return Sql(db_.get(), kClaimFree, TenantsOf(jobs), JobsOf(jobs), self.name, self.incarnation,
             self.name, self.incarnation, self.name, self.incarnation)
      .Run();
}

absl::Status PostgresFleet::ReadOwners(const DaemonRow& self, const std::vector<JobId>& jobs,
                                       std::map<JobId, OwnerRow>* owners) {
  Sql rows(db_.get(), kOwnersOfWanted, TenantsOf(jobs), JobsOf(jobs), self.name, self.incarnation);
  while (rows.Next()) {
    (*owners)[jobs[static_cast<size_t>(rows.Integer(0) - 1)]] = {
        rows.Bytes(1),        rows.Bytes(2),   rows.Integer(3),
        rows.Integer(4) != 0, rows.Integer(5), rows.Integer(6) != 0};
  }
  return rows.status();
}

absl::StatusOr<std::map<JobId, OwnerRow>> PostgresFleet::Claim(const DaemonRow& self,
                                                               const std::vector<JobId>& jobs) {
  std::map<JobId, OwnerRow> owners;
  if (jobs.empty()) return owners;
  const absl::Status status = Try(self, [&] {
    owners.clear();
    absl::Status done = Settle(self);
    if (done.ok()) done = ClaimFree(self, jobs);
    return done.ok() ? ReadOwners(self, jobs, &owners) : done;
  });
  if (!status.ok()) return status;
  return owners;
}

absl::StatusOr<std::map<JobId, int64_t>> PostgresFleet::Owned(const DaemonRow& self) {
  std::map<JobId, int64_t> owned;
  const absl::Status status = Try(self, [&] {
    owned.clear();
    const absl::Status settled = Settle(self);
    if (!settled.ok()) return settled;
    Sql rows(db_.get(), kOwnedByDaemon, self.name, self.incarnation);
    while (rows.Next()) owned[{rows.Bytes(0), rows.Bytes(1)}] = rows.Integer(2);
    return rows.status();
  });
  if (!status.ok()) return status;
  return owned;
}

absl::StatusOr<std::map<JobId, OwnerRow>> PostgresFleet::Owners() {
  std::map<JobId, OwnerRow> owners;
  const absl::Status status = Try({}, [&] {
    owners.clear();
    Sql rows(db_.get(), kAllOwners);
    while (rows.Next()) {
      owners[{rows.Bytes(0), rows.Bytes(1)}] = {rows.Bytes(2), rows.Bytes(3), rows.Integer(4),
                                                false, rows.Integer(5)};
    }
    return rows.status();
  });
  if (!status.ok()) return status;
  return owners;
}

// A request that gives a job up may take effect long after its sender has stopped waiting for it:
// by then self may have asked what it owns, and be at work for the job again. So such a request
// counts only for what was owned before it was sent, and Settle() makes self's ownership newer than
// that.
absl::Status PostgresFleet::GiveUp(const DaemonRow& self, const std::vector<JobId>& jobs,
                                   const std::function<absl::Status(int64_t now_us)>& run) {
  const absl::Status status = Try(self, [&] {
    Sql now(db_.get(), kNowUs);
    if (!now.Next()) return now.status();
    const absl::Status given = run(now.Integer(0));
    if (absl::IsUnavailable(given)) unsettled_.insert(jobs.begin(), jobs.end());
    return given;
  });
  return status;
}

absl::Status PostgresFleet::Settle(const DaemonRow& self) {
  if (unsettled_.empty()) return absl::OkStatus();
  const std::vector<JobId> jobs(unsettled_.begin(), unsettled_.end());
  const absl::Status status =
      Sql(db_.get(), kSettleJobs, TenantsOf(jobs), JobsOf(jobs), self.name, self.incarnation).Run();
  if (status.ok()) unsettled_.clear();
  return status;
}

absl::Status PostgresFleet::HandOver(const DaemonRow& self, const JobId& job, int64_t token,
                                     const DaemonRow& to) {
  return GiveUp(self, {job}, [&](int64_t now_us) {
    Sql sql(db_.get(), kHandOverJob, to.name, to.incarnation, job.tenant, job.job, self.name,
            self.incarnation, token, now_us, to.name, to.incarnation);
    const absl::Status status = sql.Run();
    if (!status.ok() || sql.changed() > 0) return status;
    return absl::AbortedError(absl::StrCat("cannot give the job ", ToText(job), " to ", to.name,
                                           ": this daemon lost the job, or that daemon is down"));
  });
}

absl::Status PostgresFleet::Want(const DaemonRow& self, const std::vector<JobId>& jobs) {
  return Try(self, [&] {
    return Sql(db_.get(), kWantJobs, TenantsOf(jobs), JobsOf(jobs), self.name, self.name).Run();
  });
}

absl::StatusOr<std::map<JobId, std::string>> PostgresFleet::Wanted(const DaemonRow& self) {
  std::map<JobId, std::string> wanted;
  const absl::Status status = Try(self, [&] {
    wanted.clear();
    Sql rows(db_.get(), kJobsThatOthersWant, self.name, self.incarnation);
    while (rows.Next()) wanted[{rows.Bytes(0), rows.Bytes(1)}] = rows.Bytes(2);
    return rows.status();
  });
  if (!status.ok()) return status;
  return wanted;
}

absl::Status PostgresFleet::Release(const DaemonRow& self, const std::vector<JobId>& jobs) {
  if (jobs.empty()) return absl::OkStatus();
  return GiveUp(self, jobs, [&](int64_t now_us) {
    return Sql(db_.get(), kReleaseJobs, TenantsOf(jobs), JobsOf(jobs), self.name, self.incarnation,
               now_us)
        .Run();
  });
}

absl::Status PostgresFleet::Leave(const DaemonRow& self) {
  return Try(self, [&] { return Sql(db_.get(), kLeaveFleet, self.name, self.incarnation).Run(); });
}

}  // namespace

std::unique_ptr<FleetStore> FleetStore::Make(PostgresOptions options) {
  return std::make_unique<PostgresFleet>(std::move(options));
}

}  // namespace rollcall
