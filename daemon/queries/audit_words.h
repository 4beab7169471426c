// SPDX-License-Identifier: Apache-2.0
// The audit's entry for a request that acts: the same by gRPC and on the page.
#pragma once

#include <string>

#include "daemon/queries/query_source.h"
#include "rollcall/v1/query.pb.h"

namespace rollcall {

struct ActionWords {
  std::string action;  // "take stacks"
  std::string object;  // to what: "job team/train attempt 2, ranks 0,3 on node-1"
};

// `queries` as the caller may see them. A request for stacks means the newest attempt of its job.
ActionWords InWords(const QuerySource& queries, const v1::TakeStacksRequest& request);
ActionWords InWords(const QuerySource& queries, const v1::LookRequest& request);
ActionWords InWords(const QuerySource& queries, const v1::IncidentActionRequest& request);
ActionWords InWords(const QuerySource& queries, const v1::AddSilenceRequest& request);
ActionWords InWords(const QuerySource& queries, const v1::EndSilenceRequest& request);

}  // namespace rollcall
