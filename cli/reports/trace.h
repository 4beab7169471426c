// SPDX-License-Identifier: Apache-2.0
// `rollcall report ID --trace=FILE`: the calls of an incident's job as a file for Perfetto.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/report/trace.h"

namespace rollcall {

class DaemonQuery;
namespace v1 {
class Incident;
}

// Returns the ranks of a trace without --rank: culprits first, then waiting ranks, then the lowest,
// 64 of them in ascending order. The job may have fewer.
std::vector<int32_t> RanksForTrace(const v1::Incident& incident);

// Parses --rank ("0-3,7", each once and in ascending order). Empty if it is not such a list, or has
// more ranks than a trace may.
std::vector<int32_t> ParseTraceRanks(const std::string& text);

// What the trace covers, and what it does not, in lines for stderr. `opened_seconds`: when the
// incident was opened, since the Unix epoch; 0 if unknown.
std::string DescribeCoverage(const std::string& path, const TraceCoverage& coverage,
                             bool from_incident, double opened_seconds);

struct TraceRequest {
  std::string path;
  std::vector<int32_t> ranks;
  bool only_these = false;  // a person has named the ranks
  TraceOptions options;
};

// Asks the daemon for the calls, `named` being the incident as the daemon has it, and writes them
// with the words of `shown` (the same, or without names). Returns the exit code; has printed the
// error.
int WriteTrace(const TraceRequest& request, DaemonQuery* daemon, const v1::Incident& named,
               const v1::Incident& shown);

}  // namespace rollcall
