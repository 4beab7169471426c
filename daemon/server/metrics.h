// SPDX-License-Identifier: Apache-2.0
// What Prometheus scrapes: jobs, communicators, incidents, and the daemon's own health.
//
// Pure: everything is in the snapshot. The number of series is bounded: no label counts ranks, and
// only the communicators that wait or lag most have series of their own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/server/daemon_counters.h"
#include "daemon/server/http_front.h"
#include "daemon/server/incident_counts.h"
#include "rollcall/v1/query.pb.h"

namespace rollcall {

inline constexpr size_t kMaxJobsMeasured = 200;
inline constexpr int kMaxCommunicatorsMeasured = 20;  // of one job

struct JobMetrics {
  v1::JobStatus status;
  uint64_t records_lost = 0;
  IncidentCounts incidents;
};

struct MetricsSnapshot {
  std::string version;
  int agents = 0;
  std::vector<JobMetrics> jobs;
  DaemonCounters::Values daemon;
  DeliveryCounts deliveries;
  HttpFront::Counts http;
};

// Call records that were overwritten before they were read.
uint64_t RecordsLost(const JobState& state);

// In Prometheus' text format 0.0.4, or OpenMetrics 1.0.
std::string MetricsText(MetricsSnapshot snapshot, bool open_metrics);

}  // namespace rollcall
