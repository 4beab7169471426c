// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/incident_list.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "daemon/store/history.h"

namespace rollcall {
namespace {

using TimeParts = std::tuple<int64_t, int32_t>;

TimeParts Parts(const google::protobuf::Timestamp& time) { return {time.seconds(), time.nanos()}; }

int64_t LimitOf(const v1::ListIncidentsRequest& request) {
  return request.limit() <= 0 ? kUsualIncidents : std::min(request.limit(), kMostIncidents);
}

int64_t OffsetOf(const v1::ListIncidentsRequest& request) { return std::max(request.offset(), 0); }

bool HasCulpritOn(const std::string& host, const v1::Verdict& verdict) {
  return std::any_of(verdict.culprits().begin(), verdict.culprits().end(),
                     [&host](const v1::Culprit& culprit) { return culprit.host() == host; });
}

}  // namespace

bool IsAskedFor(const v1::Incident& incident, const v1::ListIncidentsRequest& request) {
  const v1::Verdict verdict = incident.verdicts().empty() ? v1::Verdict() : incident.verdicts(0);
  if (!request.job().empty() && incident.job() != request.job()) return false;
  if (!request.cause().empty() && verdict.cause() != request.cause()) return false;
  if (!request.host().empty() && !HasCulpritOn(request.host(), verdict)) return false;
  const TimeParts opened = Parts(incident.opened_at());
  if (request.has_from() && opened < Parts(request.from())) return false;
  return !request.has_until() || opened <= Parts(request.until());
}

bool ComesBefore(const v1::Incident& a, const v1::Incident& b) {
  return std::make_tuple(Parts(b.opened_at()), a.id()) <
         std::make_tuple(Parts(a.opened_at()), b.id());
}

// Each one in memory may push an incident of the history onto a later page.
Window WindowFor(const v1::ListIncidentsRequest& request, int64_t in_memory) {
  const int64_t offset = std::max<int64_t>(OffsetOf(request) - in_memory, 0);
  return {offset, OffsetOf(request) + LimitOf(request) - offset};
}

v1::ListIncidentsResponse Merge(const v1::ListIncidentsRequest& request,
                                std::vector<v1::Incident> in_memory, const Window& window,
                                v1::ListIncidentsResponse history) {
  std::sort(in_memory.begin(), in_memory.end(), &ComesBefore);
  history.set_total(history.total() + static_cast<int32_t>(in_memory.size()));
  auto next = in_memory.begin();
  if (window.offset > 0) {
    // Those before the window are on earlier pages, for the window begins as many earlier as there
    // are in memory. So are all, where the window is empty.
    next = history.incidents().empty()
               ? in_memory.end()
               : std::partition_point(next, in_memory.end(), [&history](const v1::Incident& mine) {
                   return ComesBefore(mine, history.incidents(0));
                 });
  }
  const int64_t skipped = OffsetOf(request) - window.offset - (next - in_memory.begin());
  std::vector<v1::Incident> merged;
  std::merge(std::make_move_iterator(next), std::make_move_iterator(in_memory.end()),
             std::make_move_iterator(history.mutable_incidents()->begin()),
             std::make_move_iterator(history.mutable_incidents()->end()),
             std::back_inserter(merged), &ComesBefore);
  history.clear_incidents();
  const int64_t end = std::min<int64_t>(skipped + LimitOf(request), int64_t(merged.size()));
  for (int64_t i = skipped; i < end; ++i) {
    history.add_incidents()->Swap(&merged[static_cast<size_t>(i)]);
  }
  return history;
}

}  // namespace rollcall
