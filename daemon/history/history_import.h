// SPDX-License-Identifier: Apache-2.0
// Copies the history of one daemon from its file into the database of several, once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/history/history.h"

namespace rollcall {

class PostgresHistory;

struct ImportCounts {
  int64_t incidents = 0;  // copied, with their stacks, notes and alerts
  int64_t known = 0;      // incidents that the database has already
  int64_t jobs = 0;       // whose hosts or attempts were copied
  int64_t silences = 0;
  // Ids that the database has given to other incidents: these were left out.
  std::vector<std::string> clashes;
};

// The import calls it after each batch; may be empty.
using ImportProgress = std::function<void(const ImportCounts&)>;

// Copies what `to` does not have: an incident with its alerts, the hosts and attempts of a job, a
// silence. Never changes what `to` has, so it may run again, also after a failure, and beside
// daemons that use `to`: it goes on where it has stopped. The newest incidents come first. Actions
// of operators are not copied. An open incident belongs to the daemon that `to` was opened for.
absl::StatusOr<ImportCounts> ImportHistory(const History& from, PostgresHistory* to,
                                           const ImportProgress& progress);

}  // namespace rollcall
