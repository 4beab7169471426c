// SPDX-License-Identifier: Apache-2.0
// All that the daemon has of its incidents in memory, behind one mutex.
//
// The mutex guards each part as a whole, with what the part keeps. The parts take no lock: who
// calls one holds the mutex, and parts call each other under it. A thread may hold a job's mutex in
// JobStore when it takes this one (IncidentBook::Apply()), never the other way round. The mutexes
// of ReportQueue, HistoryKeeper, AlertSender and Timeline come after it.
#pragma once

#include "base/mutex.h"
#include "daemon/incidents/hang_rows.h"
#include "daemon/incidents/host_labels.h"
#include "daemon/incidents/incident_alerts.h"
#include "daemon/incidents/incident_publisher.h"
#include "daemon/incidents/incident_quota.h"
#include "daemon/incidents/incident_table.h"
#include "daemon/incidents/incident_writers.h"
#include "daemon/incidents/returning_hosts.h"
#include "daemon/incidents/silenced_alerts.h"
#include "daemon/jobs/daemon_counters.h"
#include "daemon/jobs/timeline.h"

namespace rollcall {

struct IncidentStore {
  IncidentStore(const IncidentBookOptions& options, const IncidentWriters* writers,
                Timeline* timeline, DaemonCounters* counters)
      : quota(options.quota),
        publisher(!options.report_dir.empty(), writers, timeline, counters, &table, &quota),
        silenced(options, writers, timeline, &table),
        rows(&table),
        alerts(options, writers, timeline, counters,
               {&table, &quota, &publisher, &silenced, &rows}),
        host_labels(options.host_labels) {}
  IncidentStore(const IncidentStore&) = delete;
  IncidentStore& operator=(const IncidentStore&) = delete;

  mutable Mutex mutex;
  IncidentTable table ABSL_GUARDED_BY(mutex);
  IncidentQuota quota ABSL_GUARDED_BY(mutex);
  IncidentPublisher publisher ABSL_GUARDED_BY(mutex);
  SilencedAlerts silenced ABSL_GUARDED_BY(mutex);
  HangRows rows ABSL_GUARDED_BY(mutex);
  IncidentAlerts alerts ABSL_GUARDED_BY(mutex);
  ReturningHosts returning ABSL_GUARDED_BY(mutex);
  HostLabels host_labels ABSL_GUARDED_BY(mutex);
};

}  // namespace rollcall
