// SPDX-License-Identifier: Apache-2.0
// What the audit says of a request for stacks or for a look: the same by gRPC and on the page.
#pragma once

#include <string>

#include "daemon/queries/query_source.h"
#include "rollcall/v1/query.pb.h"

namespace rollcall {

// "job team/train attempt 2, ranks 0,3 on node-1": the job that the request means to this caller,
// or what the request says if there is no such job.
std::string StacksInWords(const QuerySource& queries, const v1::TakeStacksRequest& request);

// "job team/train.py that is not recorded".
std::string LookInWords(const v1::LookRequest& request);

}  // namespace rollcall
