// SPDX-License-Identifier: Apache-2.0
// Queries to a QuerySource, in short.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "daemon/queries/query_source.h"
#include "proto/timestamps.h"

namespace rollcall {

template <typename Request>
Request RequestFor(const JobSelector& selector) {
  Request request;
  request.set_job(selector.job);
  request.set_tenant(selector.tenant);
  if (selector.attempt.has_value()) request.set_attempt(*selector.attempt);
  return request;
}

inline v1::StatusResponse StatusOf(const QuerySource& queries, const JobSelector& selector = {},
                                   bool with_communicators = true) {
  auto request = RequestFor<v1::StatusRequest>(selector);
  request.set_host(selector.host);
  request.set_offset(static_cast<int32_t>(selector.offset));
  request.set_limit(static_cast<int32_t>(selector.most));
  request.set_without_communicators(!with_communicators);
  absl::StatusOr<v1::StatusResponse> status = queries.GetStatus(request);
  EXPECT_TRUE(status.ok()) << status.status();
  return status.ok() ? *std::move(status) : v1::StatusResponse();
}

inline absl::StatusOr<v1::JobView> JobOf(const QuerySource& queries, const JobSelector& selector) {
  auto request = RequestFor<v1::JobRequest>(selector);
  if (selector.at_ns != 0) *request.mutable_at() = ToTimestamp(selector.at_ns);
  return queries.GetJob(request);
}

inline absl::StatusOr<v1::Incident> IncidentOf(const QuerySource& queries, const std::string& id) {
  v1::IncidentRequest request;
  request.set_id(id);
  return queries.GetIncident(request);
}

inline absl::StatusOr<v1::Incident> Act(QuerySource* queries, const std::string& id,
                                        const std::string& action, const std::string& text,
                                        const std::string& who) {
  v1::IncidentActionRequest request;
  request.set_id(id);
  request.set_action(action);
  request.set_text(text);
  return queries->ActOnIncident(request, who);
}

}  // namespace rollcall
