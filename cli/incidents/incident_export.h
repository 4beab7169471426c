// SPDX-License-Identifier: Apache-2.0
// rollcall incidents --format=csv: the whole list, in parts, for other programs.
#pragma once

#include "cli/query.h"

namespace rollcall {

// Writes every incident that the request selects to stdout, newest first, whatever its limit. Holds
// a part of them at once. Returns the exit code.
int ExportIncidents(v1::ListIncidentsRequest request, DaemonQuery* query);

}  // namespace rollcall
