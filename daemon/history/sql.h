// SPDX-License-Identifier: Apache-2.0
// SQL on one connection to a database, without a word of which database that is.
//
//   absl::Status status = Sql(db, "DELETE FROM culprits WHERE incident = ?", id).Run();
//
// One thread at a time uses a connection.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace rollcall {

// Bytes of any values. Texts are UTF-8.
struct SqlBlob {
  const std::string& bytes;
};

// A statement that runs with the first Next().
class SqlStatement {
 public:
  virtual ~SqlStatement() = default;

  // Binds the next "?" of the text.
  virtual void Bind(int64_t value) = 0;
  virtual void Bind(const std::string& text) = 0;
  virtual void Bind(const SqlBlob& blob) = 0;

  // Returns true if there is a row, false after the last row or a failure.
  virtual bool Next() = 0;
  // kDataLoss: the file is damaged. kInvalidArgument: the values are refused for good.
  // kUnavailable: any other failure.
  virtual absl::Status status() const = 0;
  // Values of the current row, by column.
  virtual int64_t Integer(int column) const = 0;
  virtual std::string Bytes(int column) const = 0;
  // The rows that the statement has written or deleted.
  virtual int64_t changed() const = 0;
};

class SqlDatabase {
 public:
  virtual ~SqlDatabase() = default;
  // Each value is a "?". A text with an error makes a statement that fails.
  virtual std::unique_ptr<SqlStatement> Prepare(const std::string& text) = 0;
  // Begins a transaction that will write.
  virtual const char* begin() const = 0;
  virtual bool is_connected() const = 0;

 private:
  friend class SqlTransaction;
  int depth_ = 0;  // of transactions
};

using SqlValue = std::variant<int64_t, std::string>;

// The text of a statement, or of a part of one, and the values of its "?" in order.
struct SqlText {
  std::string text;
  std::vector<SqlValue> values;

  SqlText() = default;
  // "?", or "?, ?" for a list.
  SqlText(SqlValue value) : text("?"), values{std::move(value)} {}  // NOLINT: fillings are values
  explicit SqlText(std::vector<SqlValue> list);
};

// Fills in a statement that is written whole. A {name} becomes its filling; what stands in
// [brackets] is left out if a filling in it is empty. Brackets hold no brackets.
using SqlFillings = std::map<std::string, SqlText>;
SqlText FillIn(absl::string_view text, const SqlFillings& fillings);

// One statement, as values in the order of its text.
class Sql {
 public:
  template <typename... Values>
  Sql(SqlDatabase* db, const std::string& text, const Values&... values)
      : statement_(db->Prepare(text)) {
    (Bind(values), ...);
  }
  Sql(SqlDatabase* db, const SqlText& text) : statement_(db->Prepare(text.text)) {
    for (const SqlValue& value : text.values) Bind(value);
  }

  Sql& Bind(int64_t value) { return statement_->Bind(value), *this; }
  Sql& Bind(const std::string& text) { return statement_->Bind(text), *this; }
  Sql& Bind(const SqlBlob& blob) { return statement_->Bind(blob), *this; }
  Sql& Bind(const SqlValue& value) {
    std::visit([this](const auto& one) { statement_->Bind(one); }, value);
    return *this;
  }
  Sql& BindBlob(const std::string& bytes) { return Bind(SqlBlob{bytes}); }

  bool Next() { return statement_->Next(); }
  absl::Status Run() {
    while (Next()) {
    }
    return status();
  }
  absl::Status status() const { return statement_->status(); }
  int64_t Integer(int column) const { return statement_->Integer(column); }
  std::string Bytes(int column) const { return statement_->Bytes(column); }
  int64_t changed() const { return statement_->changed(); }

 private:
  const std::unique_ptr<SqlStatement> statement_;
};

// A part of a larger transaction is not a transaction of its own.
class SqlTransaction {
 public:
  explicit SqlTransaction(SqlDatabase* db) : db_(db) {
    if (db_->depth_++ == 0) begun_ = Sql(db_, db_->begin()).Run();
  }
  ~SqlTransaction() {
    if (!has_ended_) (void)End(absl::UnknownError("left"));
  }
  SqlTransaction(const SqlTransaction&) = delete;
  SqlTransaction& operator=(const SqlTransaction&) = delete;

  const absl::Status& begun() const { return begun_; }

  // Commits if all has succeeded so far. Returns the first failure.
  absl::Status End(const absl::Status& status) {
    has_ended_ = true;
    if (--db_->depth_ > 0 || !begun_.ok()) return begun_.ok() ? status : begun_;
    const absl::Status ended = Sql(db_, status.ok() ? "COMMIT" : "ROLLBACK").Run();
    if (status.ok() && !ended.ok()) (void)Sql(db_, "ROLLBACK").Run();
    return status.ok() ? ended : status;
  }

 private:
  SqlDatabase* const db_;
  absl::Status begun_;
  bool has_ended_ = false;
};

// Runs the statement for many rows of equal length: "INSERT INTO t VALUES {rows}". Two of one
// statement must not have one key.
absl::Status InsertRows(SqlDatabase* db, absl::string_view text,
                        const std::vector<std::vector<SqlValue>>& rows);

// Returns the first value of the first row; 0 if there is none or the statement fails.
int64_t ReadInteger(SqlDatabase* db, const std::string& text);

}  // namespace rollcall
