// SPDX-License-Identifier: Apache-2.0
// The part of the history that lets a restarted daemon continue.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "daemon/history/alert_kinds.h"
#include "daemon/history/sql_history.h"
#include "proto/timestamps.h"

namespace rollcall {
namespace {

constexpr int kMostSilencesLoaded = 1000;
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

}  // namespace

class SqlHistory::Scope {
 public:
  // `job`: nullptr for all jobs of the daemon.
  Scope(const HistoryDialect& dialect, const std::string& daemon, const JobId* job)
      : dialect_(dialect), daemon_(daemon), job_(job) {}

  bool is_one_job() const { return job_ != nullptr; }

  // Each is a condition on rows of that table, with " AND " before it. BindTo() binds its values.
  std::string OfIncidents() const {
    if (job_ != nullptr) return absl::StrCat(" AND ", dialect_.tenant, " = ? AND job = ?");
    return OfOwner("incidents");
  }
  // Returns the condition for a table with tenant and job columns.
  std::string OfJobs(const char* table) const {
    return job_ != nullptr ? " AND tenant = ? AND job = ?" : OfOwner(table);
  }
  std::string OfAlerts() const {
    if (job_ != nullptr) {
      return absl::StrCat(" AND incident IN (SELECT id FROM incidents WHERE ", dialect_.tenant,
                          " = ? AND job = ?)");
    }
    if (!dialect_.has_daemons) return "";
    return " AND coalesce((SELECT o.daemon FROM incidents AS i JOIN owners AS o ON o.tenant = "
           "i.tenant AND o.job = i.job WHERE i.id = outbox.incident AND o.daemon IS NOT NULL LIMIT "
           "1), outbox.daemon) = ?";
  }
  void BindTo(Sql* sql) const {
    if (job_ != nullptr) {
      sql->Bind(job_->tenant).Bind(job_->job);
    } else if (dialect_.has_daemons) {
      sql->Bind(daemon_);
    }
  }

 private:
  std::string OfOwner(const std::string& table) const {
    if (!dialect_.has_daemons) return "";
    return absl::StrCat(" AND coalesce((SELECT o.daemon FROM owners AS o WHERE o.tenant = ", table,
                        ".tenant AND o.job = ", table, ".job), ", table, ".daemon) = ?");
  }

  const HistoryDialect& dialect_;
  const std::string& daemon_;
  const JobId* const job_;
};

absl::Status SqlHistory::LoadOpen(const Scope& scope, std::vector<v1::Incident>* open) const {
  Sql rows(db(), absl::StrCat("SELECT summary, stacks FROM incidents WHERE closed_ns = 0",
                              scope.OfIncidents(), " ORDER BY opened_ns, id"));
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

absl::Status SqlHistory::LoadClosed(const Scope& scope, std::vector<v1::Incident>* closed) const {
  Sql rows(db(),
           absl::StrCat("SELECT summary FROM incidents WHERE closed_ns != 0", scope.OfIncidents(),
                        scope.is_one_job() ? "" : " AND job IN (SELECT job FROM job_hosts)",
                        " ORDER BY opened_ns DESC LIMIT ?"));
  scope.BindTo(&rows);
  rows.Bind(kMostClosed);
  while (rows.Next()) {
    v1::Incident incident;
    if (!incident.ParseFromString(rows.Bytes(0)) || !incident.has_confirmed_at()) continue;
    closed->push_back(std::move(incident));
  }
  return rows.status();
}

absl::Status SqlHistory::LoadReceivers(std::vector<AlertRow>* alerts) const {
  for (AlertRow& alert : *alerts) {
    if (alert.sent) continue;
    Sql rows(db(), "SELECT receiver FROM outbox_receivers WHERE incident = ? AND sequence = ?",
             alert.incident, alert.sequence);
    while (rows.Next()) alert.receivers.insert(rows.Bytes(0));
    if (!rows.status().ok()) return rows.status();
  }
  return absl::OkStatus();
}

absl::Status SqlHistory::LoadAlerts(const Scope& scope, Continuation* continuation) const {
  std::vector<AlertRow>* const alerts = &continuation->alerts;
  // Of one job all are few. To choose among all alerts for each of many jobs would take longer.
  const char* const chosen =
      scope.is_one_job()
          ? "1 = 1"
          : "incident IN (SELECT incident FROM outbox GROUP BY incident HAVING "
            "min(sent % 2) = 0 OR max(CASE kind WHEN 'resolved' THEN 1 ELSE 0 END) = 0 "
            "UNION SELECT id FROM incidents WHERE closed_ns = 0)";
  Sql rows(db(),
           absl::StrCat("SELECT incident, sequence, kind, made_ns, body, sent FROM outbox WHERE ",
                        chosen, scope.OfAlerts(), " ORDER BY incident, sequence"));
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
  return rows.status().ok() ? LoadReceivers(alerts) : rows.status();
}

absl::Status SqlHistory::LoadHosts(const Scope& scope,
                                   std::map<JobKey, std::set<std::string>>* hosts) const {
  Sql rows(db(), absl::StrCat("SELECT tenant, job, attempt, host FROM job_hosts WHERE 1 = 1",
                              scope.OfJobs("job_hosts")));
  scope.BindTo(&rows);
  while (rows.Next()) {
    const JobKey key({rows.Bytes(0), rows.Bytes(1)}, static_cast<int32_t>(rows.Integer(2)));
    (*hosts)[key].insert(rows.Bytes(3));
  }
  return rows.status();
}

absl::Status SqlHistory::LoadAttempts(const Scope& scope,
                                      std::map<JobKey, AttemptFacts>* attempts) const {
  Sql rows(db(), absl::StrCat("SELECT tenant, job, attempt, world_size, restarts, launch, has_twin "
                              "FROM job_attempts WHERE 1 = 1",
                              scope.OfJobs("job_attempts")));
  scope.BindTo(&rows);
  while (rows.Next()) {
    const JobKey key({rows.Bytes(0), rows.Bytes(1)}, static_cast<int32_t>(rows.Integer(2)));
    (*attempts)[key] = {static_cast<int32_t>(rows.Integer(3)),
                        rows.Bytes(4),
                        rows.Bytes(5),
                        rows.Integer(6) != 0,
                        {}};
  }
  if (!rows.status().ok()) return rows.status();
  Sql members(db(),
              absl::StrCat("SELECT tenant, job, attempt, host, pid, start_time, rank FROM "
                           "attempt_members WHERE (tenant, job, attempt) IN (SELECT tenant, job, "
                           "attempt FROM job_attempts "
                           "WHERE 1 = 1",
                           scope.OfJobs("job_attempts"),
                           ") ORDER BY tenant, job, attempt, host, pid, start_time"));
  scope.BindTo(&members);
  while (members.Next()) {
    const auto at = attempts->find(
        JobKey({members.Bytes(0), members.Bytes(1)}, static_cast<int32_t>(members.Integer(2))));
    if (at == attempts->end()) continue;
    at->second.members.push_back({{members.Bytes(3), static_cast<int32_t>(members.Integer(4)),
                                   static_cast<uint64_t>(members.Integer(5))},
                                  static_cast<int32_t>(members.Integer(6))});
  }
  return members.status();
}

absl::Status SqlHistory::LoadSilences(std::vector<v1::Silence>* silences) const {
  Sql rows(db(), "SELECT body FROM silences ORDER BY until_ns DESC LIMIT ?");
  rows.Bind(kMostSilencesLoaded);
  while (rows.Next()) {
    v1::Silence silence;
    if (silence.ParseFromString(rows.Bytes(0))) silences->push_back(std::move(silence));
  }
  return rows.status();
}

absl::StatusOr<std::vector<v1::Silence>> SqlHistory::ListSilences() const {
  std::vector<v1::Silence> silences;
  const MutexLock lock(mutex_);
  const absl::Status status = LoadSilences(&silences);
  if (!status.ok()) return status;
  return silences;
}

absl::Status SqlHistory::LoadFor(const Scope& scope, Continuation* continuation) const {
  absl::Status status = LoadOpen(scope, &continuation->open);
  if (status.ok()) status = LoadHosts(scope, &continuation->hosts);
  if (status.ok()) status = LoadClosed(scope, &continuation->closed);
  if (status.ok()) status = LoadAlerts(scope, continuation);
  if (status.ok()) status = LoadAttempts(scope, &continuation->attempts);
  return status;
}

absl::StatusOr<Continuation> SqlHistory::Load() const {
  Continuation continuation;
  const MutexLock lock(mutex_);
  absl::Status status = LoadFor(Scope(dialect_, daemon_, nullptr), &continuation);
  if (status.ok()) status = LoadSilences(&continuation.silences);
  if (!status.ok()) return status;
  return continuation;
}

absl::StatusOr<Continuation> SqlHistory::LoadJob(const JobId& job) const {
  Continuation continuation;
  const MutexLock lock(mutex_);
  const absl::Status status = LoadFor(Scope(dialect_, daemon_, &job), &continuation);
  if (!status.ok()) return status;
  Sql number(db(), dialect_.last_number, job.tenant, job.job);
  if (!number.Next()) return number.status();
  continuation.last_number = static_cast<int>(number.Integer(0));
  return continuation;
}

}  // namespace rollcall
