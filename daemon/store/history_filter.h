// SPDX-License-Identifier: Apache-2.0
// The part of a request for incidents that SQL selects.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/store/sql.h"
#include "proto/whole_numbers.h"
#include "rollcall/v1/query.pb.h"

namespace rollcall {

// The conditions of a request, and their values in order.
struct HistoryFilter {
  explicit HistoryFilter(const v1::ListIncidentsRequest& request) {
    if (!request.job().empty()) Add("job = ?", request.job());
    // The release before layout 2 wrote no keys.
    if (!request.tenant().empty()) {
      Add("coalesce((SELECT tenant FROM incident_keys WHERE incident = id), 'default') = ?",
          request.tenant());
    }
    if (!request.tenants().empty()) {
      AddList("coalesce((SELECT tenant FROM incident_keys WHERE incident = id), 'default') IN",
              {request.tenants().begin(), request.tenants().end()});
    }
    if (request.has_attempt()) {
      Add("coalesce((SELECT attempt FROM incident_keys WHERE incident = id), 0) = ?",
          int64_t{request.attempt()});
    }
    if (!request.cause().empty()) Add("cause = ?", request.cause());
    if (!request.host().empty()) {
      Add("id IN (SELECT incident FROM culprits WHERE host = ?)", request.host());
    }
    if (!request.signature().empty()) {
      Add("id IN (SELECT incident FROM incident_signatures WHERE signature = ?)",
          request.signature());
    }
    if (request.has_from()) Add("opened_ns >= ?", NsOf(request.from()));
    if (request.has_until()) Add("opened_ns <= ?", NsOf(request.until()));
  }

  void Without(const std::vector<std::string>& ids) {
    if (ids.empty()) return;
    AddList("id NOT IN", ids);
  }

  std::string Where() const {
    std::string where;
    for (const std::string& condition : conditions) {
      where += (where.empty() ? " WHERE " : " AND ") + condition;
    }
    return where;
  }
  void BindTo(Sql* sql) const {
    for (const auto& [text, number, is_text] : values) {
      if (is_text) {
        sql->Bind(text);
      } else {
        sql->Bind(number);
      }
    }
  }

 private:
  void Add(const char* condition, const std::string& value) {
    conditions.emplace_back(condition);
    values.push_back({value, 0, true});
  }
  void Add(const char* condition, int64_t value) {
    conditions.emplace_back(condition);
    values.push_back({"", value, false});
  }
  // `list` is not empty.
  void AddList(const std::string& condition, const std::vector<std::string>& list) {
    std::string marks = "?";
    for (size_t i = 1; i < list.size(); ++i) marks += ", ?";
    conditions.push_back(condition + " (" + marks + ")");
    for (const std::string& text : list) values.push_back({text, 0, true});
  }
  struct Value {
    std::string text;
    int64_t number;
    bool is_text;
  };
  std::vector<std::string> conditions;
  std::vector<Value> values;
};

}  // namespace rollcall
