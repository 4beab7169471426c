// SPDX-License-Identifier: Apache-2.0
// The silences, stored, and the incidents whose alerts they hold back. One owner, no lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/incidents/incident_table.h"
#include "daemon/incidents/incident_writers.h"
#include "daemon/incidents/silences.h"
#include "daemon/jobs/timeline.h"
#include "daemon/model/tenants.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

class SilencedAlerts {
 public:
  // `options`: whether alerts have receivers, and the name of this daemon among others.
  SilencedAlerts(const IncidentBookOptions& options, const IncidentWriters* writers,
                 Timeline* timeline, IncidentTable* table);

  // See Silences. A new silence holds back alerts at once.
  absl::StatusOr<v1::Silence> Add(const v1::Silence& wanted, int64_t seconds,
                                  const std::string& who, const Tenants& tenants);
  absl::StatusOr<v1::Silence> End(const std::string& id, const Tenants& tenants);
  std::vector<v1::Silence> List(const Tenants& tenants) const;
  void Restore(const std::vector<v1::Silence>& stored) { silences_.Restore(stored); }
  // Takes over what other daemons have stored.
  void Merge(const std::vector<v1::Silence>& stored);
  // A new file replaced the history.
  void SaveAgain() const;

  // Sets whether silences hold back the alerts of the incident, and counts it once on each that
  // does.
  bool Check(const JobIncidents& job, IncidentRecord* record);
  // Whether silences hold back the alerts of an incident that has gone.
  bool Fits(const v1::Incident& incident);
  // The live incidents that the silences have held back until now.
  IncidentTable::Ids TakeUnsilenced();

  size_t CountLasting() const;
  uint64_t alerts() const { return alerts_; }  // incidents whose first alert was held back

 private:
  void HoldBack(const v1::Silence& silence);

  const bool has_receivers_;
  const IncidentWriters* const writers_;
  Timeline* const timeline_;
  IncidentTable* const table_;
  Silences silences_;
  // Incidents that are held back, with the ids of the silences that have counted them or need not.
  // Some may be over, or gone.
  std::map<std::pair<JobKey, std::string>, std::set<std::string>> held_;
  uint64_t alerts_ = 0;
};

}  // namespace rollcall
