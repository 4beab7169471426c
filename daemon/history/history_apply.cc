// SPDX-License-Identifier: Apache-2.0
// The writes of the history, as SQL.
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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

// "INSERT ... ON CONFLICT ..." of one row, or the parts of it around the values of several.
struct Upsert {
  Upsert(const char* table, std::vector<std::string> key, std::vector<std::string> others,
         const HistoryDialect& dialect, bool is_owned) {
    if (is_owned && dialect.has_daemons) others.push_back("daemon");
    std::vector<std::string> columns = key;
    columns.insert(columns.end(), others.begin(), others.end());
    head = absl::StrCat("INSERT INTO ", table, " (", absl::StrJoin(columns, ", "), ")");
    marks = absl::StrCat(" VALUES (",
                         absl::StrJoin(std::vector<std::string>(columns.size(), "?"), ", "), ")");
    tail = absl::StrCat(" ON CONFLICT (", absl::StrJoin(key, ", "), ") DO ");
    if (others.empty()) tail += "NOTHING";
    for (size_t i = 0; i < others.size(); ++i) {
      absl::StrAppend(&tail, i == 0 ? "UPDATE SET " : ", ", others[i], " = excluded.", others[i]);
    }
  }
  std::string text() const { return head + marks + tail; }

  std::string head, marks, tail;
};

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

absl::Status DeleteJob(const SqlWriting& to, const char* table, const JobKey& job) {
  return Sql(to.db,
             absl::StrCat("DELETE FROM ", table, " WHERE tenant = ? AND job = ? AND attempt = ?"),
             job.tenant, job.job, job.attempt)
      .Run();
}

absl::Status SaveAlert(const SqlWriting& to, const v1::HistoryWrite::Alert& alert) {
  const Upsert upsert("outbox", {"incident", "sequence"}, {"kind", "made_ns", "body", "sent"},
                      to.dialect, true);
  Sql sql(to.db, upsert.text(), alert.incident(), alert.sequence(), alert.kind(), alert.made_ns());
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
  const Upsert upsert("outbox_receivers", {"incident", "sequence", "receiver"}, {}, to.dialect,
                      false);
  return Sql(to.db, upsert.text(), mark.incident(), mark.sequence(), mark.receiver()).Run();
}

absl::Status SaveHosts(const SqlWriting& to, const v1::HistoryWrite::Hosts& hosts) {
  const JobKey job = KeyOf(hosts.job());
  const Upsert upsert("job_hosts", {"tenant", "job", "attempt", "host"}, {"seen_ns"}, to.dialect,
                      true);
  std::vector<std::vector<SqlValue>> rows;
  for (const std::string& host :
       std::set<std::string>(hosts.hosts().begin(), hosts.hosts().end())) {
    rows.push_back({job.tenant, job.job, int64_t{job.attempt}, host, hosts.seen_ns()});
    if (to.dialect.has_daemons) rows.back().push_back(to.daemon);
  }
  return InsertRows(to.db, upsert.head, rows, upsert.tail);
}

absl::Status SaveMembers(const SqlWriting& to, const v1::HistoryWrite::Attempt& attempt) {
  const JobKey job = KeyOf(attempt.job());
  const Upsert upsert("attempt_members", {"tenant", "job", "attempt", "host", "pid", "start_time"},
                      {"rank"}, to.dialect, false);
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
  return InsertRows(to.db, upsert.head, rows, upsert.tail);
}

absl::Status SaveAttempts(const SqlWriting& to, const v1::HistoryWrite::Attempts& attempts) {
  const Upsert upsert("job_attempts", {"tenant", "job", "attempt"},
                      {"world_size", "restarts", "launch", "has_twin", "seen_ns"}, to.dialect,
                      true);
  for (const v1::HistoryWrite::Attempt& attempt : attempts.attempts()) {
    const JobKey job = KeyOf(attempt.job());
    Sql sql(to.db, upsert.text(), job.tenant, job.job, job.attempt, attempt.world_size(),
            attempt.restarts(), attempt.launch(), attempt.has_twin() ? 1 : 0, attempts.seen_ns());
    BindMine(to, &sql);
    absl::Status status = sql.Run();
    if (status.ok()) status = SaveMembers(to, attempt);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ForgetAttempt(const SqlWriting& to, const JobKey& job) {
  const absl::Status status = DeleteJob(to, "job_attempts", job);
  return status.ok() ? DeleteJob(to, "attempt_members", job) : status;
}

absl::Status SaveSilence(const SqlWriting& to, const v1::Silence& silence) {
  const Upsert upsert("silences", {"id"}, {"until_ns", "body"}, to.dialect, false);
  return Sql(to.db, upsert.text(), silence.id(), NsOf(silence.until()))
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
      return DeleteJob(to, "job_hosts", KeyOf(write.forget_hosts()));
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
