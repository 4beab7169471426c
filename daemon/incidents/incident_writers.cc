// SPDX-License-Identifier: Apache-2.0
#include "daemon/incidents/incident_writers.h"

#include <utility>

#include "daemon/history/history.h"
#include "daemon/jobs/ownership.h"
#include "rollcall/v1/store.pb.h"

namespace rollcall {
namespace {

constexpr uint64_t kBacklog = 200;  // writes: they take a second at most

}  // namespace

absl::Status IncidentWriters::Start(const IncidentBookOptions& options, DaemonCounters* counters) {
  is_kept = !options.history.path.empty();
  history = std::make_unique<HistoryKeeper>(options.history);
  absl::Status usable = history->Start();
  if (!usable.ok()) return usable;
  ReportQueueOptions of_reports;
  of_reports.report_dir = options.report_dir;
  of_reports.keep = options.keep_reports;
  of_reports.continues_reports = is_kept;
  reports = std::make_unique<ReportQueue>(of_reports);
  AlertOptions of_alerts = options.alerts;
  if (options.ownership != nullptr) {
    of_alerts.may_send = [ownership = options.ownership](const v1::Incident& incident) {
      return ownership->MayAlert(ReadJobKey(incident));
    };
  }
  alerts = std::make_unique<AlertSender>(std::move(of_alerts),
                                         is_kept ? history->outbox() : nullptr, counters);
  return absl::OkStatus();
}

void IncidentWriters::SaveForLater(v1::HistoryWrite write) const {
  if (is_kept) history->Apply(std::move(write));
}

bool IncidentWriters::HasBacklog() const {
  const HistoryKeeper::Counts counts = history->counts();
  return counts.waiting + counts.spooled > kBacklog;
}

}  // namespace rollcall
