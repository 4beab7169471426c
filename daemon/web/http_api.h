// SPDX-License-Identifier: Apache-2.0
// The JSON API, one row for each address: those of questions.def, and what this API has besides;
// see docs/http_api.md. query.proto defines the messages.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "net/http_types.h"
#include "rollcall/v1/query.pb.h"

namespace rollcall {

class QuerySource;

// The part of a URL after "?", in order. Names may repeat.
class QueryParameters {
 public:
  void Add(std::string name, std::string value) {
    values_.emplace_back(std::move(name), std::move(value));
  }
  // "" if the parameter is missing. Cleaned (base/clean_text.h), as all names that the daemon
  // stores are: so no answer repeats a control character of the request.
  std::string Get(const std::string& name) const;
  std::vector<std::string> All(const std::string& name) const;
  // Returns `otherwise` if the parameter is missing, kInvalidArgument if it is not a number from 0.
  absl::StatusOr<int> Number(const std::string& name, int otherwise) const;
  // kInvalidArgument if a value is not text: it names the parameter.
  absl::Status CheckText() const;
  // Whether the parameter is 1. kInvalidArgument if it is neither 1 nor 0 nor missing.
  absl::StatusOr<bool> Flag(const std::string& name) const;

 private:
  std::vector<std::pair<std::string, std::string>> values_;
};

// An operator who acts, and the audit of the action, which is called once, before it begins.
struct ApiOperator {
  std::string name;
  std::function<void(const std::string& action, const std::string& object)> audit;
};

struct ApiRoute {
  const char* path;
  absl::StatusOr<std::string> (*answer)(const ApiRoute& route, QuerySource* queries,
                                        const QueryParameters& parameters);
  // The parameter that names the job of the answer; empty if the answer covers all jobs.
  const char* job_parameter;
  // The parameters that the answer depends on, mostly fields of the request; others are ignored.
  std::vector<std::string> parameters;
  const char* content_type = kJsonType;
  // Replaces `answer` if the request acts. It needs a POST and the role of an operator.
  const char* action = "";  // for the audit: "take stacks"
  absl::StatusOr<std::string> (*act)(const ApiRoute& route, QuerySource* queries,
                                     const QueryParameters& parameters,
                                     const ApiOperator& caller) = nullptr;

  bool acts() const { return act != nullptr; }
};

extern const std::vector<ApiRoute> kApiRoutes;

// The job that `job`, `tenant` and `attempt` name. kNotFound lists the jobs that there are.
absl::StatusOr<v1::JobStatus> FindJobStatus(QuerySource* queries,
                                            const QueryParameters& parameters);

}  // namespace rollcall
