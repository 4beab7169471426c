// SPDX-License-Identifier: Apache-2.0
// Metrics for Prometheus: jobs, communicators, incidents, and the daemon itself.
//
// Pure: everything is in the snapshot. The number of series is bounded: no label is a rank, and
// only the communicators that wait or lag most have series of their own.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/incidents/incident_counts.h"
#include "daemon/jobs/daemon_counters.h"
#include "daemon/jobs/ownership.h"
#include "daemon/model/job_state.h"
#include "net/http_front.h"
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
  size_t jobs_total = 0;  // also those without metrics of their own
  DaemonCounters::Values daemon;
  DeliveryCounts deliveries;
  HttpFront::Counts http;
  std::map<std::string, uint64_t> refused;  // by reason
  std::optional<double> certificate_days;   // until the certificate expires; nullopt without TLS
};

// This daemon and the others on its database.
struct FleetMetrics {
  size_t living = 0;  // by their leases, this one too
  size_t silent = 0;  // of these: have not answered this daemon's last query
  bool holds_lease = false;
  FleetJobs jobs;
};

// Adds them to the result of MetricsText().
std::string WithFleetMetrics(std::string text, const FleetMetrics& fleet, bool open_metrics);

// Call records that the library overwrote before the agent read them.
uint64_t RecordsLost(const JobState& state);

// Returns the metrics in Prometheus' text format 0.0.4, or in OpenMetrics 1.0.
std::string MetricsText(MetricsSnapshot snapshot, bool open_metrics);

}  // namespace rollcall
