// SPDX-License-Identifier: Apache-2.0
// The part of the history that lets a restarted daemon continue.
#include <sqlite3.h>

#include <string>
#include <vector>

#include "daemon/store/history.h"
#include "daemon/store/sql.h"
#include "proto/whole_numbers.h"

namespace rollcall {
namespace {

constexpr int kMostSilencesLoaded = 1000;
constexpr int kMostClosed = 1000;

absl::Status LoadOpen(sqlite3* db, std::vector<v1::Incident>* open) {
  Sql rows(db, "SELECT summary, stacks FROM incidents WHERE closed_ns = 0 ORDER BY opened_ns, id");
  while (rows.Next()) {
    v1::Incident incident;
    if (!incident.ParseFromString(rows.Bytes(0)) || !incident.MergeFromString(rows.Bytes(1))) {
      continue;
    }
    open->push_back(std::move(incident));
  }
  return rows.status();
}

absl::Status LoadClosed(sqlite3* db, std::vector<v1::Incident>* closed) {
  Sql rows(db,
           "SELECT summary FROM incidents WHERE closed_ns != 0 AND job IN (SELECT job FROM "
           "job_hosts) ORDER BY opened_ns DESC LIMIT ?",
           kMostClosed);
  while (rows.Next()) {
    v1::Incident incident;
    if (!incident.ParseFromString(rows.Bytes(0)) || !incident.has_confirmed_at()) continue;
    closed->push_back(std::move(incident));
  }
  return rows.status();
}

absl::Status LoadReceivers(sqlite3* db, AlertRow* alert) {
  Sql rows(db, "SELECT receiver FROM outbox_receivers WHERE incident = ? AND sequence = ?",
           alert->incident, alert->sequence);
  while (rows.Next()) alert->receivers.insert(rows.Bytes(0));
  return rows.status();
}

absl::Status LoadAlerts(sqlite3* db, std::vector<AlertRow>* alerts) {
  Sql rows(db, "SELECT incident, sequence, kind, made_ns, body, sent FROM outbox WHERE incident IN "
               "(SELECT incident FROM outbox GROUP BY incident HAVING min(sent) = 0 OR "
               "max(kind = 'resolved') = 0 UNION SELECT id FROM incidents WHERE closed_ns = 0) ORDER BY incident, sequence");
  while (rows.Next()) {
    AlertRow& alert = alerts->emplace_back();
    alert.incident = rows.Bytes(0);
    alert.sequence = static_cast<int32_t>(rows.Integer(1));
    alert.kind = rows.Bytes(2);
    alert.made_ns = rows.Integer(3);
    alert.sent = rows.Integer(5) != 0;
    if (!alert.body.ParseFromString(rows.Bytes(4))) alerts->pop_back();
  }
  absl::Status status = rows.status();
  for (AlertRow& alert : *alerts) {
    if (status.ok() && !alert.sent) status = LoadReceivers(db, &alert);
  }
  return status;
}

absl::Status LoadHosts(sqlite3* db, std::map<JobKey, std::set<std::string>>* hosts) {
  Sql rows(db, "SELECT tenant, job, attempt, host FROM job_hosts");
  while (rows.Next()) {
    const JobKey key({rows.Bytes(0), rows.Bytes(1)}, static_cast<int32_t>(rows.Integer(2)));
    (*hosts)[key].insert(rows.Bytes(3));
  }
  return rows.status();
}

absl::Status LoadAttempts(sqlite3* db, std::map<JobKey, AttemptFacts>* attempts) {
  Sql rows(db, "SELECT tenant, job, attempt, world_size, restarts, launch, has_twin FROM "
               "job_attempts");
  while (rows.Next()) {
    const JobKey key({rows.Bytes(0), rows.Bytes(1)}, static_cast<int32_t>(rows.Integer(2)));
    (*attempts)[key] = {static_cast<int32_t>(rows.Integer(3)), rows.Bytes(4), rows.Bytes(5),
                        rows.Integer(6) != 0, {}};
  }
  if (!rows.status().ok()) return rows.status();
  Sql members(db, "SELECT tenant, job, attempt, host, pid, start_time, rank FROM attempt_members");
  while (members.Next()) {
    const auto at = attempts->find(JobKey({members.Bytes(0), members.Bytes(1)},
                                          static_cast<int32_t>(members.Integer(2))));
    if (at == attempts->end()) continue;
    at->second.members.push_back({{members.Bytes(3), static_cast<int32_t>(members.Integer(4)),
                                   static_cast<uint64_t>(members.Integer(5))},
                                  static_cast<int32_t>(members.Integer(6))});
  }
  return members.status();
}

absl::Status SaveMembers(sqlite3* db, const JobKey& job, const AttemptFacts& facts) {
  absl::Status status;
  for (const auto& [process, rank] : facts.members) {
    if (!status.ok()) break;
    status = Sql(db, "INSERT OR REPLACE INTO attempt_members VALUES (?, ?, ?, ?, ?, ?, ?)",
                 job.tenant, job.job, job.attempt, process.host, process.pid,
                 static_cast<int64_t>(process.start_time), rank)
                 .Run();
  }
  return status;
}

absl::Status LoadSilences(sqlite3* db, std::vector<v1::Silence>* silences) {
  Sql rows(db, "SELECT body FROM silences ORDER BY until_ns DESC LIMIT ?");
  rows.Bind(kMostSilencesLoaded);
  while (rows.Next()) {
    v1::Silence silence;
    if (silence.ParseFromString(rows.Bytes(0))) silences->push_back(std::move(silence));
  }
  return rows.status();
}

// Ends a transaction: commits if all has succeeded so far.
absl::Status End(sqlite3* db, const absl::Status& status) {
  const absl::Status ended = Sql(db, status.ok() ? "COMMIT" : "ROLLBACK").Run();
  if (status.ok() && !ended.ok()) (void)Sql(db, "ROLLBACK").Run();
  return status.ok() ? ended : status;
}

}  // namespace

absl::Status History::SaveAlert(const AlertRow& alert) {
  const absl::MutexLock lock(&mutex_);
  return Sql(db_, "INSERT OR REPLACE INTO outbox VALUES (?, ?, ?, ?, ?, ?)", alert.incident,
             alert.sequence, alert.kind, alert.made_ns)
      .BindBlob(alert.body.SerializeAsString())
      .Bind(alert.sent ? 1 : 0)
      .Run();
}

absl::Status History::MarkAlert(const std::string& incident, int32_t sequence,
                                const std::string& receiver) {
  const absl::MutexLock lock(&mutex_);
  if (receiver.empty()) {
    return Sql(db_, "UPDATE outbox SET sent = 1 WHERE incident = ? AND sequence = ?", incident,
               sequence)
        .Run();
  }
  return Sql(db_, "INSERT OR IGNORE INTO outbox_receivers VALUES (?, ?, ?)", incident, sequence,
             receiver)
      .Run();
}

absl::Status History::SaveHosts(const JobKey& job, const std::vector<std::string>& hosts,
                                int64_t seen_ns) {
  const absl::MutexLock lock(&mutex_);
  absl::Status status = Sql(db_, "BEGIN IMMEDIATE").Run();
  if (!status.ok()) return status;
  for (const std::string& host : hosts) {
    if (!status.ok()) break;
    status = Sql(db_, "INSERT OR REPLACE INTO job_hosts VALUES (?, ?, ?, ?, ?)", job.tenant,
                 job.job, job.attempt, host, seen_ns)
                 .Run();
  }
  return End(db_, status);
}

absl::Status History::SaveAttempts(const std::map<JobKey, AttemptFacts>& attempts,
                                   int64_t seen_ns) {
  const absl::MutexLock lock(&mutex_);
  absl::Status status = Sql(db_, "BEGIN IMMEDIATE").Run();
  if (!status.ok()) return status;
  for (const auto& [job, facts] : attempts) {
    if (!status.ok()) break;
    status = Sql(db_, "INSERT OR REPLACE INTO job_attempts VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                 job.tenant, job.job, job.attempt, facts.world_size, facts.restarts, facts.launch,
                 facts.has_twin ? 1 : 0, seen_ns)
                 .Run();
    if (status.ok()) status = SaveMembers(db_, job, facts);
  }
  return End(db_, status);
}

absl::Status History::ForgetAttempt(const JobKey& job) {
  const absl::MutexLock lock(&mutex_);
  absl::Status status = Sql(db_, "BEGIN IMMEDIATE").Run();
  if (!status.ok()) return status;
  for (const char* table : {"job_attempts", "attempt_members"}) {
    if (!status.ok()) break;
    status = Sql(db_,
                 absl::StrCat("DELETE FROM ", table, " WHERE tenant = ? AND job = ? AND attempt = ?"),
                 job.tenant, job.job, job.attempt)
                 .Run();
  }
  return End(db_, status);
}

absl::Status History::ForgetHosts(const JobKey& job) {
  const absl::MutexLock lock(&mutex_);
  return Sql(db_, "DELETE FROM job_hosts WHERE tenant = ? AND job = ? AND attempt = ?", job.tenant,
             job.job, job.attempt)
      .Run();
}

absl::StatusOr<Continuation> History::Load() const {
  Continuation continuation;
  const absl::MutexLock lock(&mutex_);
  absl::Status status = LoadOpen(db_, &continuation.open);
  if (status.ok()) status = LoadHosts(db_, &continuation.hosts);
  if (status.ok()) status = LoadClosed(db_, &continuation.closed);
  if (status.ok()) status = LoadAlerts(db_, &continuation.alerts);
  if (status.ok()) status = LoadAttempts(db_, &continuation.attempts);
  if (status.ok()) status = LoadSilences(db_, &continuation.silences);
  if (!status.ok()) return status;
  return continuation;
}

absl::Status History::SaveSilence(const v1::Silence& silence) {
  const absl::MutexLock lock(&mutex_);
  return Sql(db_, "INSERT OR REPLACE INTO silences VALUES (?, ?, ?)", silence.id(),
             NsOf(silence.until()))
      .BindBlob(silence.SerializeAsString())
      .Run();
}

absl::Status History::SaveAction(const ActionRow& action) {
  const absl::MutexLock lock(&mutex_);
  return Sql(db_, "INSERT INTO actions VALUES (?, ?, ?, ?, ?)", action.at_ns, action.who,
             action.action, action.object, action.peer)
      .Run();
}

}  // namespace rollcall
