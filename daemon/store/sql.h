// SPDX-License-Identifier: Apache-2.0
// A thin wrapper of SQLite: one prepared statement, which the destructor finalizes.
//
//   absl::Status status = Sql(db, "DELETE FROM culprits WHERE incident = ?", id).Run();
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace rollcall {

class Sql {
 public:
  // Binds the values to the first parameters.
  template <typename... Values>
  Sql(sqlite3* db, const std::string& text, const Values&... values) : db_(db) {
    result_ = sqlite3_prepare_v2(db, text.c_str(), -1, &statement_, nullptr);
    (Bind(values), ...);
  }
  ~Sql() { sqlite3_finalize(statement_); }
  Sql(const Sql&) = delete;
  Sql& operator=(const Sql&) = delete;

  // Binds the next parameter.
  Sql& Bind(int64_t value) {
    sqlite3_bind_int64(statement_, ++bound_, value);
    return *this;
  }
  Sql& Bind(const std::string& text) {
    sqlite3_bind_text(statement_, ++bound_, text.data(), static_cast<int>(text.size()),
                      SQLITE_TRANSIENT);
    return *this;
  }
  Sql& BindBlob(const std::string& bytes) {
    sqlite3_bind_blob(statement_, ++bound_, bytes.data(), static_cast<int>(bytes.size()),
                      SQLITE_TRANSIENT);
    return *this;
  }

  // Returns true if there is a row, false after the last row or a failure.
  bool Next() {
    if (result_ != SQLITE_OK && result_ != SQLITE_ROW) return false;
    result_ = sqlite3_step(statement_);
    return result_ == SQLITE_ROW;
  }
  absl::Status Run() {
    while (Next()) {
    }
    return status();
  }
  // kDataLoss: the file is damaged. kUnavailable: any other failure.
  absl::Status status() const {
    if (result_ == SQLITE_OK || result_ == SQLITE_ROW || result_ == SQLITE_DONE) {
      return absl::OkStatus();
    }
    const int code = result_ & 0xff;  // without the extended error code
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB) {
      return absl::DataLossError(sqlite3_errmsg(db_));
    }
    return absl::UnavailableError(sqlite3_errmsg(db_));
  }

  // Values of the current row, by column.
  int64_t Integer(int column) { return sqlite3_column_int64(statement_, column); }
  std::string Bytes(int column) {
    const void* data = sqlite3_column_blob(statement_, column);
    const int size = sqlite3_column_bytes(statement_, column);
    return data == nullptr ? "" : std::string(static_cast<const char*>(data), size_t(size));
  }

 private:
  sqlite3* const db_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
  int result_ = SQLITE_OK;
};

}  // namespace rollcall
