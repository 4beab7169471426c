// SPDX-License-Identifier: Apache-2.0
// The partitions of tables in PostgreSQL: one for each week of UTC, from Monday, named by that day
// ("incidents_20261123"). A whole week is dropped at once, which costs nothing and leaves no holes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/history/history_week.h"
#include "daemon/history/sql.h"

namespace rollcall {

// "incidents_20261123"
std::string PartitionName(const std::string& table, int64_t week);

// Makes the partition unless it is there, without holding back those who read and write the table.
// Inside a transaction; waits there for others who do the same.
absl::Status EnsurePartition(SqlDatabase* db, const std::string& table, int64_t week);

struct Partition {
  int64_t week = 0;
  int64_t bytes = 0;  // with its indexes, on the server's disk
};

// Returns the partitions, the oldest first.
absl::StatusOr<std::vector<Partition>> ListPartitions(SqlDatabase* db, const std::string& table);

absl::Status DropPartition(SqlDatabase* db, const std::string& table, int64_t week);

}  // namespace rollcall
