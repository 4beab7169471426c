// SPDX-License-Identifier: Apache-2.0
// A thin hold on SQLite: one prepared statement, bound and stepped, finalized when it goes.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace rollcall {

class Sql {
 public:
  Sql(sqlite3* db, const std::string& text) : db_(db) {
    result_ = sqlite3_prepare_v2(db, text.c_str(), -1, &statement_, nullptr);
  }
  ~Sql() { sqlite3_finalize(statement_); }
  Sql(const Sql&) = delete;
  Sql& operator=(const Sql&) = delete;

  // The next parameter, from the first on.
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

  // True: there is a row. False: that was all, or it failed.
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
  // kDataLoss: the file is damaged. kUnavailable: anything else that went wrong.
  absl::Status status() const {
    if (result_ == SQLITE_OK || result_ == SQLITE_ROW || result_ == SQLITE_DONE) {
      return absl::OkStatus();
    }
    const int code = result_ & 0xff;  // without what extends it
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB) {
      return absl::DataLossError(sqlite3_errmsg(db_));
    }
    return absl::UnavailableError(sqlite3_errmsg(db_));
  }

  // Of the row, by column.
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
