// SPDX-License-Identifier: Apache-2.0
// A connection to a file of SQLite.
#pragma once

#include <memory>
#include <string>

#include "daemon/history/sql.h"

struct sqlite3;

namespace rollcall {

class SqliteDatabase : public SqlDatabase {
 public:
  // Owns `db`, which may have failed to open.
  explicit SqliteDatabase(sqlite3* db) : db_(db) {}
  ~SqliteDatabase() override;
  SqliteDatabase(const SqliteDatabase&) = delete;
  SqliteDatabase& operator=(const SqliteDatabase&) = delete;

  std::unique_ptr<SqlStatement> Prepare(const std::string& text) override;
  const char* begin() const override { return "BEGIN IMMEDIATE"; }
  bool is_connected() const override { return true; }

 private:
  sqlite3* const db_;
};

}  // namespace rollcall
