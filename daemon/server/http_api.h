// SPDX-License-Identifier: Apache-2.0
// The JSON API, one row an address: docs/http_api.md. The messages are those of query.proto.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace rollcall {

class QuerySource;

// What came after the "?", in order; names may repeat.
class QueryParameters {
 public:
  void Add(std::string name, std::string value) {
    values_.emplace_back(std::move(name), std::move(value));
  }
  std::string Get(const std::string& name) const;  // "": it is not there
  std::vector<std::string> All(const std::string& name) const;
  // `otherwise` where it is not there; kInvalidArgument where it is no number.
  absl::StatusOr<int> Number(const std::string& name, int otherwise) const;

 private:
  std::vector<std::pair<std::string, std::string>> values_;
};

struct ApiRoute {
  const char* path;
  absl::StatusOr<std::string> (*answer)(QuerySource* queries, const QueryParameters& parameters);
  // The parameter that names the job of which the answer tells; "": it tells of all.
  const char* job_parameter;
  bool changes_anything;  // asked for by POST
};

extern const std::vector<ApiRoute> kApiRoutes;

}  // namespace rollcall
