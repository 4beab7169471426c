// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/incident_growth.h"

#include <algorithm>
#include <string>

#include "daemon/history/history.h"
#include "daemon/history/incident_facts.h"
#include "daemon/history/incident_groups.h"
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

// Sorts as the history does.
bool IsBefore(const v1::IncidentCount& a, const v1::IncidentCount& b) {
  if (a.incidents() != b.incidents()) return a.incidents() > b.incidents();
  return a.lost_rank_seconds() > b.lost_rank_seconds();
}

// Since the history stored it: up to its confirmation.
double GrowthSeconds(const v1::Incident& incident, int64_t now_ns) {
  const int64_t stored_ms = LostRankMs(incident, NsOf(incident.confirmed_at()));
  return std::max(LostRankSeconds(incident, now_ns) - static_cast<double>(stored_ms) / 1000, 0.0);
}

}  // namespace

double LostRankSeconds(const v1::Incident& incident, int64_t now_ns) {
  const int64_t until_ns = incident.has_closed_at() ? NsOf(incident.closed_at()) : now_ns;
  return static_cast<double>(LostRankMs(incident, until_ns)) / 1000;
}

bool NeedsStacks(const v1::CountIncidentsRequest& request) { return request.by() == "framework"; }

bool NeedsStacks(const v1::HistoryQuery::Groups& /*query*/) { return false; }

void AddGrowth(const std::vector<v1::Incident>& open, const v1::HistoryQuery::Groups& query,
               int64_t now_ns, v1::ListIncidentsResponse* response) {
  for (const v1::Incident& incident : open) {
    if (incident.has_closed_at() || !IsSelected(incident, query.request())) continue;
    const std::string signature = SignatureOf(incident), tenant = ReadJobKey(incident).tenant;
    for (v1::IncidentGroup& group : *response->mutable_groups()) {
      if (group.signature() != signature || group.tenant() != tenant) continue;
      group.set_lost_rank_seconds(group.lost_rank_seconds() + GrowthSeconds(incident, now_ns));
    }
  }
}

void AddGrowth(const std::vector<v1::Incident>& open, const v1::CountIncidentsRequest& request,
               int64_t now_ns, v1::CountIncidentsResponse* response) {
  for (const v1::Incident& incident : open) {
    if (incident.has_closed_at() || !IsCounted(incident, request)) continue;
    const IncidentFacts facts = FactsOf(incident);
    const double growth = GrowthSeconds(incident, now_ns);
    for (v1::IncidentCount& count : *response->mutable_counts()) {
      if (facts.values.count({request.by(), count.value()}) == 0) continue;
      count.set_lost_rank_seconds(count.lost_rank_seconds() + growth);
    }
  }
  std::stable_sort(response->mutable_counts()->begin(), response->mutable_counts()->end(),
                   &IsBefore);
}

}  // namespace rollcall
