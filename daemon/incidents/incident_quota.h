// SPDX-License-Identifier: Apache-2.0
// How many incidents of a job are stored, and how many alerts it causes, in an hour. A job that
// hangs, goes on and hangs again makes an incident each time, which must not call a person each
// time.
//
// Alerts: beyond the limit they are held back. One alert reports all that were held back: when
// there is room again, or when an incident whose alert was held back lasts. So no lasting hang
// stays unannounced. Incidents: beyond the limit an incident is shown while it lasts, and neither
// stored nor reported. A suspicion and a hang count separately, so that suspicions cannot hide a
// hang.
//
// All attempts of a job count together. One owner, no lock; the caller passes the time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/model/client_limits.h"
#include "daemon/model/job_key.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

struct IncidentQuotaLimits {
  size_t alerts = limits::kAlertsAnHour;
  size_t incidents = limits::kIncidentsAnHour;
  int64_t hour_ns = 3600'000'000'000;
  // An incident of this length is announced even if the job has had its alerts.
  int64_t lasting_ns = 300'000'000'000;
};

class IncidentQuota {
 public:
  explicit IncidentQuota(IncidentQuotaLimits limits) : limits_(limits) {}

  // The limits from now on, also for what has happened already.
  void SetLimits(const IncidentQuotaLimits& limits) { limits_ = limits; }
  const IncidentQuotaLimits& limits() const { return limits_; }

  // Whether the incident that opens now may be stored.
  bool MayStoreOpened(const JobId& job, int64_t now_ns);
  // Whether the incident that is confirmed now may be stored. `is_stored`: it is already.
  bool MayStoreConfirmed(const JobId& job, bool is_stored, int64_t now_ns);

  // Whether the alert of the incident that is confirmed now may go out. False if it is held back.
  bool MayAlert(const JobId& job, const v1::Incident& incident, int64_t now_ns);
  // Whether the next alert of the job would be held back.
  bool IsFull(const JobId& job) const;
  // The incident has changed. Keeps it if it is the newest one whose alert is held back.
  void Update(const JobId& job, const v1::Incident& incident);

  // One alert for those that were held back.
  struct Due {
    JobId job;
    v1::Incident incident;  // the newest, without stacks; its summary lists all
  };
  std::vector<Due> TakeDue(int64_t now_ns);

  size_t jobs() const { return jobs_.size(); }

 private:
  // The events of the last hour.
  class Window {
   public:
    void Drop(int64_t until_ns) {
      while (!times_.empty() && times_.front() <= until_ns) times_.pop_front();
    }
    void Add(int64_t now_ns) { times_.push_back(now_ns); }
    size_t size() const { return times_.size(); }

   private:
    std::deque<int64_t> times_;
  };
  struct Job {
    Window opened, confirmed, alerts;
    size_t held = 0;      // alerts that were held back, and that no alert has reported
    v1::Incident newest;  // of those
    int64_t newest_ns = 0;
  };

  Job* Find(const JobId& job, int64_t now_ns);
  void DropOld(int64_t now_ns, Job* job) const;
  bool IsDue(const Job& job, int64_t now_ns) const;

  IncidentQuotaLimits limits_;
  std::map<JobId, Job> jobs_;  // with an event in the last hour
};

}  // namespace rollcall
