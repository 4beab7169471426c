// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/incident_growth.h"

#include <algorithm>
#include <string>

#include "daemon/history/incident_facts.h"
#include "daemon/history/incident_list.h"
#include "proto/timestamps.h"

namespace rollcall {
namespace {

bool IsCounted(const v1::Incident& incident, const v1::CountIncidentsRequest& request) {
  v1::ListIncidentsRequest list;
  list.set_job(request.job());
  list.set_tenant(request.tenant());
  list.set_cause(request.cause());
  *list.mutable_tenants() = request.tenants();
  if (request.has_from()) *list.mutable_from() = request.from();
  if (request.has_until()) *list.mutable_until() = request.until();
  return IsSelected(incident, list);
}

// As the history sorts them.
bool IsBefore(const v1::IncidentCount& a, const v1::IncidentCount& b) {
  if (a.incidents() != b.incidents()) return a.incidents() > b.incidents();
  return a.lost_rank_seconds() > b.lost_rank_seconds();
}

}  // namespace

double LostRankSeconds(const v1::Incident& incident, int64_t now_ns) {
  const int64_t until_ns = incident.has_closed_at() ? NsOf(incident.closed_at()) : now_ns;
  return static_cast<double>(LostRankMs(incident, until_ns)) / 1000;
}

void AddGrowth(const std::vector<v1::Incident>& open, const v1::CountIncidentsRequest& request,
               int64_t now_ns, v1::CountIncidentsResponse* response) {
  for (const v1::Incident& incident : open) {
    if (incident.has_closed_at() || !IsCounted(incident, request)) continue;
    const IncidentFacts facts = FactsOf(incident);
    const double stored = static_cast<double>(facts.lost_rank_ms) / 1000;
    const double growth = std::max(LostRankSeconds(incident, now_ns) - stored, 0.0);
    for (v1::IncidentCount& count : *response->mutable_counts()) {
      if (facts.values.count({request.by(), count.value()}) == 0) continue;
      count.set_lost_rank_seconds(count.lost_rank_seconds() + growth);
    }
  }
  std::stable_sort(response->mutable_counts()->begin(), response->mutable_counts()->end(),
                   &IsBefore);
}

}  // namespace rollcall
