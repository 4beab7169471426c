// SPDX-License-Identifier: Apache-2.0
// How the queries of people (history_query.h) are read with SQL: a function for each, and what they
// share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/history/history_dialect.h"
#include "daemon/history/history_query.h"
#include "daemon/history/sql.h"
#include "proto/timestamps.h"
#include "rollcall/v1/query.pb.h"

namespace rollcall {

// A connection to read from, and what its tables are like.
struct SqlReading {
  SqlDatabase* db;
  const HistoryDialect& dialect;
};

// Read(from, request, response): each fills an empty response, of one query. kNotFound: no such
// incident.
#define ROLLCALL_QUERY(field, Request, Response, use) \
  absl::Status Read(const SqlReading& from, const v1::Request& request, v1::Response* response);
ROLLCALL_HISTORY_QUERIES(ROLLCALL_QUERY)
#undef ROLLCALL_QUERY

// The conditions of a request, and their values in order.
class HistoryFilter {
 public:
  HistoryFilter(const HistoryDialect& dialect, const v1::ListIncidentsRequest& request) {
    if (!request.job().empty()) Add("job = ?", request.job());
    if (!request.tenant().empty()) Add(absl::StrCat(dialect.tenant, " = ?"), request.tenant());
    if (!request.tenants().empty()) {
      AddList(absl::StrCat(dialect.tenant, " IN"),
              {request.tenants().begin(), request.tenants().end()});
    }
    if (request.has_attempt()) {
      Add(absl::StrCat(dialect.attempt, " = ?"), int64_t{request.attempt()});
    }
    if (!request.cause().empty()) Add("cause = ?", request.cause());
    if (!request.host().empty()) {
      Add(absl::StrCat("(", dialect.incident_key, ") IN (SELECT ", dialect.culprit_key,
                       " FROM culprits WHERE host = ?)"),
          request.host());
    }
    if (!request.signature().empty()) Add(dialect.has_signature, request.signature());
    if (request.has_from()) Add("opened_ns >= ?", NsOf(request.from()));
    if (request.has_until()) Add("opened_ns <= ?", NsOf(request.until()));
  }

  void Without(const std::vector<std::string>& ids) {
    if (ids.empty()) return;
    AddList("id NOT IN", ids);
  }

  // Empty means all rows.
  std::string Conditions() const { return absl::StrJoin(conditions_, " AND "); }
  std::string Where() const {
    return conditions_.empty() ? "" : absl::StrCat(" WHERE ", Conditions());
  }
  void BindTo(Sql* sql) const {
    for (const SqlValue& value : values_) sql->Bind(value);
  }

 private:
  void Add(std::string condition, SqlValue value) {
    conditions_.push_back(std::move(condition));
    values_.push_back(std::move(value));
  }
  // `list` is not empty.
  void AddList(const std::string& condition, const std::vector<std::string>& list) {
    std::string marks = "?";
    for (size_t i = 1; i < list.size(); ++i) marks += ", ?";
    conditions_.push_back(absl::StrCat(condition, " (", marks, ")"));
    values_.insert(values_.end(), list.begin(), list.end());
  }

  std::vector<std::string> conditions_;
  std::vector<SqlValue> values_;
};

}  // namespace rollcall
