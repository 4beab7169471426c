// SPDX-License-Identifier: Apache-2.0
// The writes of the history, as SQL.
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "daemon/history/history_write.h"
#include "daemon/history/sql_history.h"
#include "proto/timestamps.h"

namespace rollcall {
namespace {

int64_t SentColumn(const v1::HistoryWrite::Alert& alert) {
  if (IsSent(alert)) return kAlertSent;
  return IsKnownBefore(alert.kind()) ? kAlertUnsent : kAlertUnsentForLaterReleases;
}

constexpr char kSaveReceiver[] = R"sql(
INSERT INTO outbox_receivers (incident, sequence, receiver) VALUES (?, ?, ?)
ON CONFLICT (incident, sequence, receiver) DO NOTHING)sql";
constexpr char kSaveMembers[] = R"sql(
INSERT INTO attempt_members (tenant, job, attempt, host, pid, start_time, rank)
VALUES {rows}
ON CONFLICT (tenant, job, attempt, host, pid, start_time) DO UPDATE SET rank = excluded.rank)sql";
constexpr char kSaveSilence[] = R"sql(
INSERT INTO silences (id, until_ns, body) VALUES (?, ?, ?)
ON CONFLICT (id) DO UPDATE SET until_ns = excluded.until_ns, body = excluded.body)sql";
constexpr char kDeleteHosts[] =
    "DELETE FROM job_hosts WHERE tenant = ? AND job = ? AND attempt = ?";
constexpr char kDeleteAttempt[] =
    "DELETE FROM job_attempts WHERE tenant = ? AND job = ? AND attempt = ?";
constexpr char kDeleteMembers[] =
    "DELETE FROM attempt_members WHERE tenant = ? AND job = ? AND attempt = ?";

// Where the rows go, and whose they are.
struct SqlWriting {
  SqlDatabase* db;
  const HistoryDialect& dialect;
  const std::string& daemon;
};

// The value of the column `daemon`.
void BindMine(const SqlWriting& to, Sql* sql) {
  if (to.dialect.has_daemons) sql->Bind(to.daemon);
}

absl::Status DeleteJob(const SqlWriting& to, const char* text, const JobKey& job) {
  return Sql(to.db, text, job.tenant, job.job, job.attempt).Run();
}

absl::Status SaveAlert(const SqlWriting& to, const v1::HistoryWrite::Alert& alert) {
  Sql sql(to.db, to.dialect.save_alert, alert.incident(), alert.sequence(), alert.kind(),
          alert.made_ns());
  sql.BindBlob(alert.body().SerializeAsString()).Bind(SentColumn(alert));
  BindMine(to, &sql);
  return sql.Run();
}

absl::Status MarkAlert(const SqlWriting& to, const v1::HistoryWrite::AlertMark& mark) {
  if (mark.receiver().empty()) {
    return Sql(to.db, "UPDATE outbox SET sent = 1 WHERE incident = ? AND sequence = ?",
               mark.incident(), mark.sequence())
        .Run();
  }
  return Sql(to.db, kSaveReceiver, mark.incident(), mark.sequence(), mark.receiver()).Run();
}

absl::Status SaveHosts(const SqlWriting& to, const v1::HistoryWrite::Hosts& hosts) {
  const JobKey job = KeyOf(hosts.job());
  std::vector<std::vector<SqlValue>> rows;
  for (const std::string& host :
       std::set<std::string>(hosts.hosts().begin(), hosts.hosts().end())) {
    rows.push_back({job.tenant, job.job, int64_t{job.attempt}, host, hosts.seen_ns()});
    if (to.dialect.has_daemons) rows.back().push_back(to.daemon);
  }
  return InsertRows(to.db, to.dialect.save_hosts, rows);
}

absl::Status SaveMembers(const SqlWriting& to, const v1::HistoryWrite::Attempt& attempt) {
  const JobKey job = KeyOf(attempt.job());
  std::map<std::vector<SqlValue>, SqlValue> ranks;  // a process that comes twice has the later rank
  for (const v1::HistoryWrite::Member& member : attempt.members()) {
    ranks[{job.tenant, job.job, int64_t{job.attempt}, member.host(), int64_t{member.pid()},
           static_cast<int64_t>(member.start_time())}] = int64_t{member.rank()};
  }
  std::vector<std::vector<SqlValue>> rows;
  for (const auto& [key, rank] : ranks) {
    rows.push_back(key);
    rows.back().push_back(rank);
  }
  return InsertRows(to.db, kSaveMembers, rows);
}

absl::Status SaveAttempts(const SqlWriting& to, const v1::HistoryWrite::Attempts& attempts) {
  for (const v1::HistoryWrite::Attempt& attempt : attempts.attempts()) {
    const JobKey job = KeyOf(attempt.job());
    Sql sql(to.db, to.dialect.save_attempt, job.tenant, job.job, job.attempt, attempt.world_size(),
            attempt.restarts(), attempt.launch(), attempt.has_twin() ? 1 : 0, attempts.seen_ns());
    BindMine(to, &sql);
    absl::Status status = sql.Run();
    if (status.ok()) status = SaveMembers(to, attempt);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ForgetAttempt(const SqlWriting& to, const JobKey& job) {
  const absl::Status status = DeleteJob(to, kDeleteAttempt, job);
  return status.ok() ? DeleteJob(to, kDeleteMembers, job) : status;
}

absl::Status SaveSilence(const SqlWriting& to, const v1::Silence& silence) {
  return Sql(to.db, kSaveSilence, silence.id(), NsOf(silence.until()))
      .BindBlob(silence.SerializeAsString())
      .Run();
}

}  // namespace

absl::Status SqlHistory::Apply(const v1::HistoryWrite& write) {
  const MutexLock lock(mutex_);
  SqlTransaction transaction(db());
  absl::Status status = transaction.begun();
  if (status.ok() && write.has_job()) status = CheckOwner(KeyOf(write.job()), write.token());
  if (status.ok()) status = Make(write);
  status = transaction.End(status);
  if (!status.ok()) NoteUndone();
  return status;
}

absl::Status SqlHistory::Make(const v1::HistoryWrite& write) {
  const SqlWriting to = {db(), dialect_, daemon_};
  switch (write.write_case()) {
    case v1::HistoryWrite::kIncident:
      return SaveIncident(ToRow(write.incident()));
    case v1::HistoryWrite::kAlert:
      return SaveAlert(to, write.alert());
    case v1::HistoryWrite::kAlertMark:
      return MarkAlert(to, write.alert_mark());
    case v1::HistoryWrite::kHosts:
      return SaveHosts(to, write.hosts());
    case v1::HistoryWrite::kForgetHosts:
      return DeleteJob(to, kDeleteHosts, KeyOf(write.forget_hosts()));
    case v1::HistoryWrite::kAttempts:
      return SaveAttempts(to, write.attempts());
    case v1::HistoryWrite::kForgetAttempt:
      return ForgetAttempt(to, KeyOf(write.forget_attempt()));
    case v1::HistoryWrite::kAction:
      return SaveAction(write.action());
    case v1::HistoryWrite::kSilence:
      return SaveSilence(to, write.silence());
    case v1::HistoryWrite::WRITE_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("a write that this release does not support");
}

}  // namespace rollcall
