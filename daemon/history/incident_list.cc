// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/incident_list.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/history/history.h"
#include "daemon/history/incident_groups.h"

namespace rollcall {
namespace {

using TimeParts = std::tuple<int64_t, int32_t>;

TimeParts Parts(const google::protobuf::Timestamp& time) { return {time.seconds(), time.nanos()}; }

int64_t PageLimit(const v1::ListIncidentsRequest& request) {
  return request.limit() <= 0 ? kUsualIncidents : std::min(request.limit(), kMostIncidents);
}

int64_t PageOffset(const v1::ListIncidentsRequest& request) {
  return std::max(request.offset(), 0);
}

bool HasCulpritOn(const std::string& host, const v1::Verdict& verdict) {
  const auto& others = verdict.other_culprit_hosts();
  return std::any_of(verdict.culprits().begin(), verdict.culprits().end(),
                     [&host](const v1::Culprit& culprit) { return culprit.host() == host; }) ||
         std::find(others.begin(), others.end(), host) != others.end();
}

}  // namespace

bool IsSelected(const v1::Incident& incident, const v1::ListIncidentsRequest& request) {
  const v1::Verdict verdict = incident.verdicts().empty() ? v1::Verdict() : incident.verdicts(0);
  if (!request.job().empty() && incident.job() != request.job()) return false;
  const JobKey key = ReadJobKey(incident);
  if (!request.tenant().empty() && key.tenant != request.tenant()) return false;
  const auto& tenants = request.tenants();
  if (!tenants.empty() && std::find(tenants.begin(), tenants.end(), key.tenant) == tenants.end()) {
    return false;
  }
  if (request.has_attempt() && key.attempt != request.attempt()) return false;
  if (!request.cause().empty() && verdict.cause() != request.cause()) return false;
  if (!request.host().empty() && !HasCulpritOn(request.host(), verdict)) return false;
  if (!request.signature().empty() && SignatureOf(incident) != request.signature()) return false;
  const TimeParts opened = Parts(incident.opened_at());
  if (request.has_from() && opened < Parts(request.from())) return false;
  return !request.has_until() || opened <= Parts(request.until());
}

absl::Status NoSuchIncident(const std::string& id) {
  return absl::NotFoundError(
      absl::StrCat("no incident \"", id, "\"\n  list them:  rollcall incidents"));
}

bool ComesBefore(const v1::Incident& a, const v1::Incident& b) {
  return std::make_tuple(Parts(b.opened_at()), a.id()) <
         std::make_tuple(Parts(a.opened_at()), b.id());
}

// Each incident in memory may move an incident of the history to a later page.
Window WindowFor(const v1::ListIncidentsRequest& request, int64_t in_memory) {
  const int64_t offset = std::max<int64_t>(PageOffset(request) - in_memory, 0);
  return {offset, PageOffset(request) + PageLimit(request) - offset};
}

v1::ListIncidentsResponse Merge(const v1::ListIncidentsRequest& request,
                                std::vector<v1::Incident> in_memory, const Window& window,
                                v1::ListIncidentsResponse history) {
  std::sort(in_memory.begin(), in_memory.end(), &ComesBefore);
  history.set_total(history.total() + static_cast<int32_t>(in_memory.size()));
  auto next = in_memory.begin();
  if (window.offset > 0) {
    // Incidents before the window are on earlier pages, because the window begins earlier by the
    // number of incidents in memory. If the window is empty, all are on earlier pages.
    next = history.incidents().empty()
               ? in_memory.end()
               : std::partition_point(next, in_memory.end(), [&history](const v1::Incident& mine) {
                   return ComesBefore(mine, history.incidents(0));
                 });
  }
  const int64_t skipped = PageOffset(request) - window.offset - (next - in_memory.begin());
  std::vector<v1::Incident> merged;
  std::merge(std::make_move_iterator(next), std::make_move_iterator(in_memory.end()),
             std::make_move_iterator(history.mutable_incidents()->begin()),
             std::make_move_iterator(history.mutable_incidents()->end()),
             std::back_inserter(merged), &ComesBefore);
  history.clear_incidents();
  const int64_t end = std::min<int64_t>(skipped + PageLimit(request), int64_t(merged.size()));
  for (int64_t i = skipped; i < end; ++i) {
    history.add_incidents()->Swap(&merged[static_cast<size_t>(i)]);
  }
  return history;
}

}  // namespace rollcall
