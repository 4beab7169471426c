// SPDX-License-Identifier: Apache-2.0
// rollcall incidents --by=KIND: what comes back, over the whole history.
#pragma once

#include <string>

#include "cli/query.h"

namespace rollcall {

// "30d" or "12h" in seconds; 0 if it is not such a time.
int64_t SinceSeconds(const std::string& text);

// Asks and prints. Returns the exit code.
int PrintIncidentCounts(const v1::CountIncidentsRequest& request, const std::string& format,
                        DaemonQuery* query);

}  // namespace rollcall
