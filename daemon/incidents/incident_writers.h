// SPDX-License-Identifier: Apache-2.0
// What the incidents of a daemon need from outside: its options, and the writers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "daemon/alerts/alerts.h"
#include "daemon/history/history_keeper.h"
#include "daemon/incidents/alert_hold.h"
#include "daemon/incidents/host_labels.h"
#include "daemon/incidents/incident_quota.h"
#include "daemon/incidents/report_queue.h"
#include "daemon/jobs/daemon_counters.h"
#include "daemon/jobs/ownership.h"
#include "daemon/model/job_state.h"

namespace rollcall {

struct IncidentBookOptions {
  Limits limits;
  std::string report_dir;  // folder of reports; "" for no reports on disk
  ReportLimits keep_reports;
  HistoryKeeperOptions history;
  AlertOptions alerts;
  IncidentQuotaLimits quota;
  HostLabels host_labels;
  bool log_incidents = true;
  int64_t alert_waits_ns = kAlertWaitsNs;  // for the first stacks
  // From an alert of a hang that lasts to the next one, until somebody acknowledges it, or 0.
  int64_t remind_every_ns = 0;
  // outlives the book; nullptr means all jobs are this daemon's
  const JobOwnership* ownership = nullptr;
};

// The writers of history, reports and alerts, each with its own threads: only these threads wait
// for a disk or the network. Each writer is thread-safe.
struct IncidentWriters {
  // Returns kUnavailable, with the reason, if the history is unusable.
  absl::Status Start(const IncidentBookOptions& options, DaemonCounters* counters);

  // Saves what only a later daemon needs.
  void SaveForLater(v1::HistoryWrite write) const;
  // Whether many writes wait for the history or its database.
  bool HasBacklog() const;

  bool is_kept = false;  // the history outlives the daemon
  std::unique_ptr<HistoryKeeper> history;
  std::unique_ptr<ReportQueue> reports;
  std::unique_ptr<AlertSender> alerts;  // nullptr if Start() failed or was not called
};

}  // namespace rollcall
