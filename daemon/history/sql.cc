// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/sql.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

constexpr size_t kRowsAtOnce = 500;

std::string RowMarks(size_t columns) {
  std::string marks = "(?";
  for (size_t i = 1; i < columns; ++i) marks += ", ?";
  return marks + ")";
}

}  // namespace

absl::Status InsertRows(SqlDatabase* db, const std::string& head,
                        const std::vector<std::vector<SqlValue>>& rows, const std::string& tail) {
  for (size_t from = 0; from < rows.size(); from += kRowsAtOnce) {
    const size_t until = std::min(rows.size(), from + kRowsAtOnce);
    const std::string marks = RowMarks(rows[from].size());
    std::string text = absl::StrCat(head, " VALUES ", marks);
    for (size_t i = from + 1; i < until; ++i) absl::StrAppend(&text, ", ", marks);
    Sql sql(db, absl::StrCat(text, tail.empty() ? "" : " ", tail));
    for (size_t i = from; i < until; ++i) {
      for (const SqlValue& value : rows[i]) sql.Bind(value);
    }
    const absl::Status status = sql.Run();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

int64_t ReadInteger(SqlDatabase* db, const std::string& text) {
  Sql sql(db, text);
  return sql.Next() ? sql.Integer(0) : 0;
}

}  // namespace rollcall
