// SPDX-License-Identifier: Apache-2.0
// The recorded calls of ranks as a trace for Perfetto and chrome://tracing (docs/trace_format.md).
//
// Pure.
#pragma once

#include <cstddef>
#include <string>

namespace rollcall {

namespace v1 {
class CallsResponse;
class Incident;
}  // namespace v1

struct TraceOptions {
  // If false, without names of communicators and lines of code, for a reader elsewhere.
  bool with_names = true;
};

// What a trace holds. Times in seconds since the Unix epoch; 0 if there are no calls.
struct TraceCoverage {
  size_t calls = 0;
  size_t ranks = 0;  // with calls
  double from_seconds = 0;
  double until_seconds = 0;
};

TraceCoverage CoverageOf(const v1::CallsResponse& calls);

// The waits that the incident itself keeps, in the shape of an answer of the daemon: for each
// waiting rank of a verdict its call, from the opening of the incident to its end. Used when the
// daemon has removed the job's calls. Such calls have no GPU state and no code line.
v1::CallsResponse WaitsOf(const v1::Incident& incident);

// The calls of which a part lies between these moments, in seconds since the Unix epoch.
v1::CallsResponse CallsBetween(v1::CallsResponse calls, double from_seconds, double until_seconds);

// JSON in the trace event format, with a line end. `from_incident`: the calls are those of
// WaitsOf(). `calls` must have at least one call. An incident without an id has only the job.
std::string ToTrace(const v1::CallsResponse& calls, bool from_incident,
                    const v1::Incident& incident, const TraceOptions& options = {});

}  // namespace rollcall
