// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/query_source.h"

#include "daemon/server/access.h"

namespace rollcall {

std::unique_ptr<QuerySource> QuerySource::SeenByCaller(const Identity& caller) const {
  return caller.Has(Role::kViewer) ? SeenBy(TenantsFor(caller)) : SeenByAgent(caller);
}

absl::StatusOr<v1::ListIncidentsResponse> QuerySource::ListIncidentsWith(
    const v1::ListIncidentsRequest& request, std::vector<v1::Incident> /*newer*/) const {
  return ListIncidents(request);
}

}  // namespace rollcall
