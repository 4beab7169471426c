// SPDX-License-Identifier: Apache-2.0
// Asks a daemon for all of its jobs. One answer has at most a thousand, and those with all their
// communicators may be too long for one message. Pure but for the query.
#pragma once

#include <functional>

#include "rollcall/v1/query.pb.h"

namespace rollcall {

inline constexpr int kJobsOfPage = 200;

// Asks the daemon once. False if there is no answer.
using AskStatus = std::function<bool(const v1::StatusRequest&, v1::StatusResponse*)>;

// Asks for one page after another and joins them in `*all`: each job once, though jobs may come,
// end or change their places meanwhile. False if one of the pages has no answer.
bool FetchJobs(v1::StatusRequest request, const AskStatus& ask, v1::StatusResponse* all);

}  // namespace rollcall
