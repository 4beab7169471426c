// SPDX-License-Identifier: Apache-2.0
// The tables of the history in PostgreSQL, as a list of layouts. Each daemon brings the database to
// its own layout when it connects; several that start at once wait for each other. A daemon goes on
// with a later layout as long as that one permits it.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/history/sql.h"

namespace rollcall {

inline constexpr int kPostgresLayout = 4;  // that this release knows

// Takes the schema of the URL's search_path, else "rollcall", and makes it if need be. Returns its
// name.
absl::StatusOr<std::string> UseSchema(SqlDatabase* db);

// Creates or changes the tables. kUnimplemented: a later release has changed them so that this one
// cannot use them; says what to do.
absl::Status Migrate(SqlDatabase* db);

// Numbers this start of a daemon after all earlier ones, with the first connection that it makes.
// `incarnation`: empty if there is no fleet.
absl::Status NoteStart(SqlDatabase* db, const std::string& incarnation);

// Waits for the other daemons that change tables of this schema, until the end of the transaction.
absl::Status LockTables(SqlDatabase* db);

}  // namespace rollcall
