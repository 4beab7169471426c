// SPDX-License-Identifier: Apache-2.0
// Counts of incidents and of their deliveries, for metrics. Plain values.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "daemon/history/history_keeper.h"
#include "daemon/incidents/report_queue.h"

namespace rollcall {

// Counts of one job, since the daemon's start.
struct IncidentCounts {
  std::map<std::string, int> by_cause;         // confirmed ones
  std::map<std::string, double> hung_seconds;  // in confirmed ones, by cause
  std::string open_cause;                      // of the live incident; empty without one
};

// Deliveries of reports, history and alerts: done, waiting and lost.
struct DeliveryCounts {
  ReportQueue::Counts reports;
  HistoryKeeper::Counts history;
  uint64_t alerts_sent = 0, alerts_failed = 0, alerts_waiting = 0;
  uint64_t alerts_silenced = 0;  // incidents whose alerts a silence held back
  size_t silences = 0;           // that last now
};

}  // namespace rollcall
