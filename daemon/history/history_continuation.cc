// SPDX-License-Identifier: Apache-2.0
// The part of the history that lets a restarted daemon continue.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/substitute.h"
#include "base/mutex.h"
#include "daemon/history/history_write.h"
#include "daemon/history/sql_history.h"
#include "proto/timestamps.h"

namespace rollcall {
namespace {

constexpr int kMostClosed = 1000;

// Removes the alerts of incidents that are closed, and whose end every receiver has had.
void DropSettled(Continuation* continuation) {
  std::set<std::string> ended, unsettled;
  for (const AlertRow& alert : continuation->alerts) {
    if (alert.kind == "resolved") ended.insert(alert.incident);
    if (!alert.sent) unsettled.insert(alert.incident);
  }
  for (const v1::Incident& incident : continuation->open) unsettled.insert(incident.id());
  std::vector<AlertRow> kept;
  for (AlertRow& alert : continuation->alerts) {
    const bool is_settled = ended.count(alert.incident) > 0 && unsettled.count(alert.incident) == 0;
    if (!is_settled) kept.push_back(std::move(alert));
  }
  continuation->alerts = std::move(kept);
}

// The rows that a Continuation has: those of a job, or of this daemon's jobs. Each function returns
// a condition on rows of a table; BindTo() binds its values.
class Scope {
 public:
  // `job`: nullptr for all jobs of the daemon.
  Scope(const HistoryDialect& dialect, const std::string& daemon, const JobId* job)
      : dialect_(dialect), daemon_(daemon), job_(job) {}

  bool is_one_job() const { return job_ != nullptr; }

  std::string OfIncidents() const {
    if (job_ != nullptr) return absl::Substitute("$0 = ? AND job = ?", dialect_.tenant);
    return OfOwner("incidents");
  }
  // Narrows a table with the columns tenant and job.
  std::string OfJobs(const char* table) const {
    return job_ != nullptr ? "tenant = ? AND job = ?" : OfOwner(table);
  }
  std::string OfAlerts() const {
    if (job_ != nullptr) {
      return absl::Substitute("incident IN (SELECT id FROM incidents WHERE $0 = ? AND job = ?)",
                              dialect_.tenant);
    }
    if (!dialect_.has_daemons) return "1 = 1";
    return "coalesce((SELECT o.daemon FROM incidents AS i JOIN owners AS o ON o.tenant = i.tenant "
           "AND o.job = i.job WHERE i.id = outbox.incident AND o.daemon IS NOT NULL LIMIT 1), "
           "outbox.daemon) = ?";
  }
  void BindTo(Sql* sql) const {
    if (job_ != nullptr) {
      sql->Bind(job_->tenant).Bind(job_->job);
    } else if (dialect_.has_daemons) {
      sql->Bind(daemon_);
    }
  }

 private:
  std::string OfOwner(const char* table) const {
    if (!dialect_.has_daemons) return "1 = 1";
    return absl::Substitute(
        "coalesce((SELECT o.daemon FROM owners AS o WHERE o.tenant = $0.tenant AND o.job = "
        "$0.job), $0.daemon) = ?",
        table);
  }

  const HistoryDialect& dialect_;
  const std::string& daemon_;
  const JobId* const job_;
};

JobKey KeyIn(const Sql& row) {
  return JobKey({row.Bytes(0), row.Bytes(1)}, static_cast<int32_t>(row.Integer(2)));
}

absl::Status LoadOpen(SqlDatabase* db, const Scope& scope, std::vector<v1::Incident>* open) {
  Sql rows(db, absl::Substitute("SELECT summary, stacks FROM incidents WHERE closed_ns = 0 AND $0 "
                                "ORDER BY opened_ns, id",
                                scope.OfIncidents()));
  scope.BindTo(&rows);
  while (rows.Next()) {
    v1::Incident incident;
    if (!incident.ParseFromString(rows.Bytes(0)) || !incident.MergeFromString(rows.Bytes(1))) {
      continue;
    }
    open->push_back(std::move(incident));
  }
  return rows.status();
}

absl::Status LoadClosed(SqlDatabase* db, const Scope& scope, std::vector<v1::Incident>* closed) {
  Sql rows(db,
           absl::Substitute("SELECT summary FROM incidents WHERE closed_ns != 0 AND $0 AND $1 "
                            "ORDER BY opened_ns DESC LIMIT ?",
                            scope.OfIncidents(),
                            scope.is_one_job() ? "1 = 1" : "job IN (SELECT job FROM job_hosts)"));
  scope.BindTo(&rows);
  rows.Bind(kMostClosed);
  while (rows.Next()) {
    v1::Incident incident;
    if (!incident.ParseFromString(rows.Bytes(0)) || !incident.has_confirmed_at()) continue;
    closed->push_back(std::move(incident));
  }
  return rows.status();
}

absl::Status LoadReceivers(SqlDatabase* db, std::vector<AlertRow>* alerts) {
  for (AlertRow& alert : *alerts) {
    if (alert.sent) continue;
    Sql rows(db, "SELECT receiver FROM outbox_receivers WHERE incident = ? AND sequence = ?",
             alert.incident, alert.sequence);
    while (rows.Next()) alert.receivers.insert(rows.Bytes(0));
    if (!rows.status().ok()) return rows.status();
  }
  return absl::OkStatus();
}

absl::Status LoadAlerts(SqlDatabase* db, const Scope& scope, Continuation* continuation) {
  std::vector<AlertRow>* const alerts = &continuation->alerts;
  // Of one job all are few. To choose among all alerts for each of many jobs would take longer.
  const char* const chosen =
      scope.is_one_job()
          ? "1 = 1"
          : "incident IN (SELECT incident FROM outbox GROUP BY incident HAVING "
            "min(sent % 2) = 0 OR max(CASE kind WHEN 'resolved' THEN 1 ELSE 0 END) = 0 "
            "UNION SELECT id FROM incidents WHERE closed_ns = 0)";
  Sql rows(db, absl::Substitute("SELECT incident, sequence, kind, made_ns, body, sent FROM outbox "
                                "WHERE $0 AND $1 ORDER BY incident, sequence",
                                chosen, scope.OfAlerts()));
  scope.BindTo(&rows);
  while (rows.Next()) {
    AlertRow& alert = alerts->emplace_back();
    alert.incident = rows.Bytes(0);
    alert.sequence = static_cast<int32_t>(rows.Integer(1));
    alert.kind = rows.Bytes(2);
    alert.made_ns = rows.Integer(3);
    alert.sent = rows.Integer(5) == kAlertSent;
    if (!alert.body.ParseFromString(rows.Bytes(4))) alerts->pop_back();
  }
  if (scope.is_one_job()) DropSettled(continuation);
  return rows.status().ok() ? LoadReceivers(db, alerts) : rows.status();
}

absl::Status LoadHosts(SqlDatabase* db, const Scope& scope,
                       std::map<JobKey, std::set<std::string>>* hosts) {
  Sql rows(db, absl::Substitute("SELECT tenant, job, attempt, host FROM job_hosts WHERE $0",
                                scope.OfJobs("job_hosts")));
  scope.BindTo(&rows);
  while (rows.Next()) (*hosts)[KeyIn(rows)].insert(rows.Bytes(3));
  return rows.status();
}

absl::Status LoadMembers(SqlDatabase* db, const Scope& scope,
                         std::map<JobKey, AttemptFacts>* attempts) {
  Sql rows(db, absl::Substitute("SELECT tenant, job, attempt, host, pid, start_time, rank "
                                "FROM attempt_members WHERE (tenant, job, attempt) IN "
                                "(SELECT tenant, job, attempt FROM job_attempts WHERE $0) "
                                "ORDER BY tenant, job, attempt, host, pid, start_time",
                                scope.OfJobs("job_attempts")));
  scope.BindTo(&rows);
  while (rows.Next()) {
    const auto at = attempts->find(KeyIn(rows));
    if (at == attempts->end()) continue;
    at->second.members.push_back({{rows.Bytes(3), static_cast<int32_t>(rows.Integer(4)),
                                   static_cast<uint64_t>(rows.Integer(5))},
                                  static_cast<int32_t>(rows.Integer(6))});
  }
  return rows.status();
}

absl::Status LoadAttempts(SqlDatabase* db, const Scope& scope,
                          std::map<JobKey, AttemptFacts>* attempts) {
  Sql rows(db, absl::Substitute("SELECT tenant, job, attempt, world_size, restarts, launch, "
                                "has_twin FROM job_attempts WHERE $0",
                                scope.OfJobs("job_attempts")));
  scope.BindTo(&rows);
  while (rows.Next()) {
    (*attempts)[KeyIn(rows)] = {static_cast<int32_t>(rows.Integer(3)),
                                rows.Bytes(4),
                                rows.Bytes(5),
                                rows.Integer(6) != 0,
                                {}};
  }
  return rows.status().ok() ? LoadMembers(db, scope, attempts) : rows.status();
}

absl::Status LoadSilences(const SqlReading& from, std::vector<v1::Silence>* silences) {
  v1::ListSilencesResponse all;
  const absl::Status status = Read(from, v1::ListSilencesRequest(), &all);
  silences->assign(all.silences().begin(), all.silences().end());
  return status;
}

absl::Status LoadAll(SqlDatabase* db, const Scope& scope, Continuation* continuation) {
  absl::Status status = LoadOpen(db, scope, &continuation->open);
  if (status.ok()) status = LoadHosts(db, scope, &continuation->hosts);
  if (status.ok()) status = LoadClosed(db, scope, &continuation->closed);
  if (status.ok()) status = LoadAlerts(db, scope, continuation);
  if (status.ok()) status = LoadAttempts(db, scope, &continuation->attempts);
  return status;
}

}  // namespace

absl::StatusOr<Continuation> SqlHistory::Load() const {
  Continuation continuation;
  const MutexLock lock(mutex_);
  absl::Status status = LoadAll(db(), Scope(dialect_, daemon_, nullptr), &continuation);
  if (status.ok()) status = LoadSilences(reading(), &continuation.silences);
  if (!status.ok()) return status;
  return continuation;
}

absl::StatusOr<Continuation> SqlHistory::LoadJob(const JobId& job) const {
  Continuation continuation;
  const MutexLock lock(mutex_);
  const absl::Status status = LoadAll(db(), Scope(dialect_, daemon_, &job), &continuation);
  if (!status.ok()) return status;
  Sql number(db(), dialect_.last_number, job.tenant, job.job);
  if (!number.Next()) return number.status();
  continuation.last_number = static_cast<int>(number.Integer(0));
  return continuation;
}

}  // namespace rollcall
