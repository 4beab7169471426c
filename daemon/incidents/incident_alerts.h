// SPDX-License-Identifier: Apache-2.0
// When the alerts of incidents go out. alert_hold.h, hang_rows.h, incident_quota.h and
// silenced_alerts.h decide. One owner, no lock.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/alerts/alerts.h"
#include "daemon/diagnosis/life/incident_life.h"
#include "daemon/incidents/hang_rows.h"
#include "daemon/incidents/incident_publisher.h"
#include "daemon/incidents/incident_quota.h"
#include "daemon/incidents/incident_table.h"
#include "daemon/incidents/incident_writers.h"
#include "daemon/incidents/silenced_alerts.h"
#include "daemon/jobs/timeline.h"

namespace rollcall {

class IncidentAlerts {
 public:
  struct Parts {
    IncidentTable* table;
    IncidentQuota* quota;
    IncidentPublisher* publisher;
    SilencedAlerts* silenced;
    HangRows* rows;
  };
  // `options`: the times of alerts, and whether they have receivers. `counters` may be nullptr.
  IncidentAlerts(const IncidentBookOptions& options, const IncidentWriters* writers,
                 Timeline* timeline, DaemonCounters* counters, Parts parts);

  // The event has changed the incident.
  void Act(const IncidentEvent& event, JobIncidents* job, IncidentRecord* record);
  // A diagnosis has judged the job. The content of a message may have changed without an event:
  // lines come with stacks, and advice with what hosts show.
  void SayWhatIsNew(bool has_new_stacks, JobIncidents* job);
  // Called by the first diagnosis that finds a restored incident again.
  void SendLacking(const std::vector<Verdict>& verdicts, JobIncidents* job);
  void Say(const IncidentRecord& record, AlertEvent event);
  // Sends all that has become due by itself.
  void SendDue();

  // No stacks come any more for the first alerts that wait for some.
  void BeginStop() { is_stopping_ = true; }
  // Sends these. `ends`: also the ends that wait for a calm, which no next daemon will report.
  void SendLast(bool ends);

 private:
  bool HoldsFirst(const IncidentRecord& record) const;
  void SendFirst(JobIncidents* job, IncidentRecord* record);
  void Announce(JobIncidents* job, IncidentRecord* record);
  bool IsWithinQuota(const JobIncidents& job, IncidentRecord* record);
  void SetAnnounced(IncidentRecord* record);
  void SendDueFirst();
  void SendHeldBack();
  void SendUnsilenced();
  void SendDueEnds(int64_t until_ns);
  void SendReminders();

  const int64_t waits_ns_, remind_every_ns_;
  const bool has_receivers_;
  const IncidentWriters* const writers_;
  Timeline* const timeline_;
  DaemonCounters* const counters_;
  const Parts parts_;
  bool is_stopping_ = false;
};

}  // namespace rollcall
