// What Prometheus scrapes: jobs, communicators, incidents, and the daemon's own health.
//
// Pure: everything is in the snapshot. The number of series is bounded: no label counts ranks, and
// only the communicators that wait or lag most have series of their own.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/model/job_state.h"
#include "daemon/server/history_keeper.h"
#include "daemon/server/http_front.h"
#include "daemon/server/report_queue.h"
#include "rollcall/v1/query.pb.h"

namespace rollcall {

inline constexpr size_t kMaxJobsMeasured = 200;
inline constexpr int kMaxCommunicatorsMeasured = 20;  // of one job

struct JobMetrics {
  v1::JobStatus status;
  uint64_t records_lost = 0;
  std::map<std::string, int> incidents_by_cause;  // confirmed ones, since the daemon's start
  std::string open_cause;                         // of the live incident; "": there is none
  std::map<std::string, double> hung_seconds;     // in confirmed incidents, by cause
};

struct MetricsSnapshot {
  std::string version;
  int agents = 0;
  std::vector<JobMetrics> jobs;
  uint64_t dropped_agent_ticks = 0;
  uint64_t ticks = 0;
  double tick_seconds = 0;
  ReportQueue::Counts reports;
  HistoryKeeper::Counts history;
  HttpFront::Counts http;
  uint64_t alerts_sent = 0, alerts_failed = 0, alerts_waiting = 0;
};

// Call records that were overwritten before they were read.
uint64_t RecordsLost(const JobState& state);

// In Prometheus' text format 0.0.4, or OpenMetrics 1.0.
std::string MetricsText(MetricsSnapshot snapshot, bool open_metrics);

}  // namespace rollcall
