// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/postgres_partitions.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "daemon/history/postgres_layout.h"

namespace rollcall {
std::string PartitionName(const std::string& table, int64_t week) {
  return absl::StrCat(
      table, "_",
      absl::FormatTime("%Y%m%d", absl::FromUnixNanos(BeginOfWeek(week)), absl::UTCTimeZone()));
}

absl::Status EnsurePartition(SqlDatabase* db, const std::string& table, int64_t week) {
  const std::string name = PartitionName(table, week);
  absl::Status status = LockTables(db);
  if (!status.ok()) return status;
  Sql known(db, "SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = ?",
            name);
  if (known.Next()) return absl::OkStatus();
  if (!known.status().ok()) return known.status();
  // CREATE TABLE ... PARTITION OF would wait for all readers of the table, and they for it.
  status = Sql(db, absl::StrCat("CREATE TABLE ", name, " (LIKE ", table, " INCLUDING ALL)")).Run();
  if (!status.ok()) return status;
  return Sql(db,
             absl::StrCat("ALTER TABLE ", table, " ATTACH PARTITION ", name, " FOR VALUES FROM (",
                          BeginOfWeek(week), ") TO (", BeginOfWeek(week + 1), ")"))
      .Run();
}

absl::StatusOr<std::vector<Partition>> ListPartitions(SqlDatabase* db, const std::string& table) {
  std::vector<Partition> partitions;
  Sql rows(db,
           "SELECT c.relname, pg_total_relation_size(c.oid) FROM pg_inherits JOIN pg_class AS "
           "c ON c.oid = inhrelid JOIN pg_class AS p ON p.oid = inhparent JOIN pg_namespace AS "
           "n ON n.oid = p.relnamespace WHERE n.nspname = current_schema() AND p.relname = ? "
           "ORDER BY length(c.relname), c.relname",
           table);
  while (rows.Next()) {
    const std::string name = rows.Bytes(0);
    int day = 0;                                                              // as 20261123
    if (!absl::SimpleAtoi(name.substr(name.rfind('_') + 1), &day)) continue;  // somebody else's
    const absl::CivilDay monday(day / 10000, day / 100 % 100, day % 100);
    partitions.push_back(
        {WeekOf(absl::ToUnixNanos(absl::FromCivil(monday, absl::UTCTimeZone()))), rows.Integer(1)});
  }
  if (!rows.status().ok()) return rows.status();
  return partitions;
}

absl::Status DropPartition(SqlDatabase* db, const std::string& table, int64_t week) {
  return Sql(db, absl::StrCat("DROP TABLE IF EXISTS ", PartitionName(table, week))).Run();
}

}  // namespace rollcall
