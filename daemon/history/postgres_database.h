// SPDX-License-Identifier: Apache-2.0
// A connection to a server of PostgreSQL, by libpq, and the URLs of such connections.
//
// No call waits for ever: a server that does not answer in time loses the connection. A connection
// that broke stays broken; a caller that needs another one opens it.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/history/postgres_options.h"
#include "daemon/history/sql.h"

namespace rollcall {

// Whether the text of a flag is a URL of PostgreSQL.
bool IsPostgresUrl(absl::string_view text);

// "postgresql://rollcall@db-1:5432/rollcall" of any such URL: without its password and its
// parameters. kInvalidArgument, without the password, for a text that libpq does not take.
absl::StatusOr<std::string> PostgresUrlInPublic(const std::string& url);

// Empty if the URL has none.
std::string PasswordOfPostgresUrl(const std::string& url);

class PostgresDatabase : public SqlDatabase {
 public:
  // Takes host, user, password and the rest from the URL, else from libpq's environment and files
  // (PGPASSFILE, PGSSLROOTCERT...). kUnavailable names what failed, why, and what to type; it has
  // no password. kFailedPrecondition: the server answered, and will not let this user in.
  static absl::StatusOr<std::unique_ptr<PostgresDatabase>> Connect(const std::string& url,
                                                                   const PostgresTimes& times);
  ~PostgresDatabase() override = default;

  std::unique_ptr<SqlStatement> Prepare(const std::string& text) override = 0;
  const char* begin() const override { return "BEGIN"; }
  bool is_connected() const override = 0;

  // As 15 in "15.4".
  virtual int server_version() const = 0;
};

}  // namespace rollcall
