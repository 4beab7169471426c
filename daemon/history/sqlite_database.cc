// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/sqlite_database.h"

#include <sqlite3.h>

namespace rollcall {
namespace {

class SqliteStatement : public SqlStatement {
 public:
  SqliteStatement(sqlite3* db, const std::string& text) : db_(db) {
    result_ = sqlite3_prepare_v2(db, text.c_str(), -1, &statement_, nullptr);
  }
  ~SqliteStatement() override { sqlite3_finalize(statement_); }
  SqliteStatement(const SqliteStatement&) = delete;
  SqliteStatement& operator=(const SqliteStatement&) = delete;

  void Bind(int64_t value) override { sqlite3_bind_int64(statement_, ++bound_, value); }
  void Bind(const std::string& text) override {
    sqlite3_bind_text(statement_, ++bound_, text.data(), static_cast<int>(text.size()),
                      SQLITE_TRANSIENT);
  }
  void Bind(const SqlBlob& blob) override {
    sqlite3_bind_blob(statement_, ++bound_, blob.bytes.data(), static_cast<int>(blob.bytes.size()),
                      SQLITE_TRANSIENT);
  }

  bool Next() override {
    if (result_ != SQLITE_OK && result_ != SQLITE_ROW) return false;
    result_ = sqlite3_step(statement_);
    return result_ == SQLITE_ROW;
  }
  absl::Status status() const override {
    if (result_ == SQLITE_OK || result_ == SQLITE_ROW || result_ == SQLITE_DONE) {
      return absl::OkStatus();
    }
    const int code = result_ & 0xff;  // without the extended error code
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB) {
      return absl::DataLossError(sqlite3_errmsg(db_));
    }
    return absl::UnavailableError(sqlite3_errmsg(db_));
  }

  int64_t Integer(int column) const override { return sqlite3_column_int64(statement_, column); }
  std::string Bytes(int column) const override {
    const void* data = sqlite3_column_blob(statement_, column);
    const int size = sqlite3_column_bytes(statement_, column);
    return data == nullptr ? "" : std::string(static_cast<const char*>(data), size_t(size));
  }
  int64_t changed() const override { return sqlite3_changes(db_); }

 private:
  sqlite3* const db_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
  int result_ = SQLITE_OK;
};

}  // namespace

SqliteDatabase::~SqliteDatabase() { sqlite3_close(db_); }

std::unique_ptr<SqlStatement> SqliteDatabase::Prepare(const std::string& text) {
  return std::make_unique<SqliteStatement>(db_, text);
}

}  // namespace rollcall
