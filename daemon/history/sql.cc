// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/sql.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace rollcall {
namespace {

constexpr size_t kRowsAtOnce = 500;

void Append(const SqlText& part, SqlText* to) {
  to->text += part.text;
  to->values.insert(to->values.end(), part.values.begin(), part.values.end());
}

// Whether no {name} of the text has an empty filling.
bool IsFilled(absl::string_view text, const SqlFillings& fillings) {
  for (size_t at = text.find('{'); at != text.npos; at = text.find('{', at + 1)) {
    const absl::string_view name = text.substr(at + 1, text.find('}', at) - at - 1);
    if (fillings.at(std::string(name)).text.empty()) return false;
  }
  return true;
}

}  // namespace

SqlText::SqlText(std::vector<SqlValue> list)
    : text(absl::StrJoin(std::vector<const char*>(list.size(), "?"), ", ")),
      values(std::move(list)) {}

SqlText FillIn(absl::string_view text, const SqlFillings& fillings) {
  SqlText out;
  while (true) {
    const size_t at = text.find_first_of("{[");
    absl::StrAppend(&out.text, text.substr(0, at));
    if (at == text.npos) return out;
    const bool is_name = text[at] == '{';
    const size_t end = text.find(is_name ? '}' : ']', at);
    const absl::string_view inside = text.substr(at + 1, end - at - 1);
    if (is_name) {
      Append(fillings.at(std::string(inside)), &out);
    } else if (IsFilled(inside, fillings)) {
      Append(FillIn(inside, fillings), &out);
    }
    text.remove_prefix(end + 1);
  }
}

absl::Status InsertRows(SqlDatabase* db, absl::string_view text,
                        const std::vector<std::vector<SqlValue>>& rows) {
  for (size_t from = 0; from < rows.size(); from += kRowsAtOnce) {
    const size_t until = std::min(rows.size(), from + kRowsAtOnce);
    SqlText all;
    for (size_t i = from; i < until; ++i) {
      if (i > from) all.text += ", ";
      Append(FillIn("({row})", {{"row", SqlText(rows[i])}}), &all);
    }
    const absl::Status status = Sql(db, FillIn(text, {{"rows", std::move(all)}})).Run();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

int64_t ReadInteger(SqlDatabase* db, const std::string& text) {
  Sql sql(db, text);
  return sql.Next() ? sql.Integer(0) : 0;
}

}  // namespace rollcall
