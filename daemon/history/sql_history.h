// SPDX-License-Identifier: Apache-2.0
// What the histories in SQLite and PostgreSQL have in common: all writes and reads, and the tables
// of what a restarted daemon needs. A subclass brings the connection, the layout, and the rows of
// incidents.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "daemon/history/history.h"
#include "daemon/history/history_dialect.h"
#include "daemon/history/incident_facts.h"
#include "daemon/history/sql.h"
#include "daemon/history/sql_reads.h"
#include "rollcall/v1/store.pb.h"

namespace rollcall {

// An incident as columns.
struct IncidentRow {
  std::string id, job, tenant, cause, state, signature, hang;
  int64_t number = 0, attempt = 0, opened_ns = 0, closed_ns = 0;  // 0 if not closed
  bool is_confirmed = false;
  std::string summary, stacks;                         // messages: without stacks, only the stacks
  std::set<std::pair<std::string, int32_t>> culprits;  // host and rank; rank -1 means only the host
  IncidentFacts facts;
};

IncidentRow ToRow(const v1::Incident& incident);

class SqlHistory : public History {
 public:
  bool IsInPlace() const override;
  absl::Status Apply(const v1::HistoryWrite& write) override;
  absl::StatusOr<v1::HistoryAnswer> Answer(const v1::HistoryQuery& query) const override;
  absl::StatusOr<std::map<JobId, int>> LastNumbers() const override;
  absl::StatusOr<Continuation> Load() const override;
  absl::StatusOr<Continuation> LoadJob(const JobId& job) const override;
  absl::Status Trim(int64_t now_ns) override;

 protected:
  // `daemon`: its name in rows; "" where the layout has no such column.
  SqlHistory(std::unique_ptr<SqlDatabase> db, const HistoryDialect& dialect,
             const HistoryLimits& limits, std::string daemon);

  // These run inside a transaction.
  // kAborted: a daemon that owns the job by this token must not write about it any more.
  virtual absl::Status CheckOwner(const JobId& job, int64_t token)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  virtual absl::Status SaveIncident(const IncidentRow& row)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  virtual absl::Status SaveAction(const v1::HistoryWrite::Action& action)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // Deletes the incidents that are too old, or too many.
  virtual absl::Status TrimIncidents(int64_t now_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // Called after a trim, outside of a transaction.
  virtual absl::Status Vacuum() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // Replaces the facts of a stored incident.
  virtual absl::Status ReplaceFacts(const IncidentRow& row)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  // These wait for other daemons until the end of the transaction: until none changes tables; until
  // none counts weeks, or none saves incidents either.
  virtual absl::Status LockTables() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;
  enum class Others : uint8_t { kMaySave, kWait };
  virtual absl::Status LockWeeks(Others others) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) = 0;

  // A write has failed, and its transaction has left nothing behind.
  virtual void NoteUndone() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {}

  // ReplaceFacts() uses it: the incident has none now.
  absl::Status SaveFacts(const IncidentRow& row) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const HistoryDialect& dialect_;
  const HistoryLimits limits_;
  const std::string daemon_;
  mutable Mutex mutex_;

  SqlDatabase* db() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return db_.get(); }
  SqlReading reading() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return {db(), dialect_}; }

 private:
  // Runs all of `write` or nothing.
  template <typename Write>
  absl::Status InTransaction(const Write& write) {
    const MutexLock lock(mutex_);
    SqlTransaction transaction(db());
    return transaction.End(transaction.begun().ok() ? write() : transaction.begun());
  }

  absl::Status Make(const v1::HistoryWrite& write) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status TrimContinuation(int64_t now_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status KeepShares() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status UncountWeek(int64_t opened_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CountWeek(int64_t week, int64_t mark);
  absl::Status CountWeeks(int64_t now_ns);
  absl::Status TrimWeeks(int64_t before_ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t OldestIncident() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status FillWindow(int64_t floor_ns, int64_t* below_ns)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status FillFacts(int64_t now_ns);

  const std::unique_ptr<SqlDatabase> db_ ABSL_PT_GUARDED_BY(mutex_);
  bool has_looked_again_ = false;  // for incidents without facts, since this object began
};

}  // namespace rollcall
