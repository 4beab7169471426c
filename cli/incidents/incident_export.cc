// SPDX-License-Identifier: Apache-2.0
#include "cli/incidents/incident_export.h"

#include <iostream>
#include <set>
#include <string>

#include "daemon/access/clean_message.h"
#include "daemon/queries/incident_csv.h"
#include "proto/timestamps.h"

namespace rollcall {
namespace {

constexpr int kPart = 1000;  // the daemon's limit of an answer

// The next part begins with the time of the last line, because several incidents may have it. Says
// which of them were written.
class Place {
 public:
  // Whether the incident has not been written.
  bool Pass(const v1::Incident& incident) {
    const int64_t opened_ns = NsOf(incident.opened_at());
    if (opened_ns != opened_ns_) written_.clear();
    opened_ns_ = opened_ns;
    return written_.insert(incident.id()).second;
  }
  void Continue(v1::ListIncidentsRequest* request) const {
    *request->mutable_until() = ToTimestamp(opened_ns_);
    request->set_offset(static_cast<int32_t>(written_.size()));
  }

 private:
  int64_t opened_ns_ = -1;
  std::set<std::string> written_;  // of this time
};

}  // namespace

int ExportIncidents(v1::ListIncidentsRequest request, DaemonQuery* query) {
  request.set_rows_only(true);
  request.set_limit(kPart);
  std::cout << IncidentCsvHeader();
  Place place;
  while (true) {
    v1::ListIncidentsResponse response;
    const bool answered = query->Ask("incidents", [&](auto* stub, auto* context) {
      return stub->ListIncidents(context, request, &response);
    });
    if (!answered) return query->exit_code();
    if (!response.note().empty()) {
      std::cerr << "rollcall: the export is not whole: " << response.note() << "\n";
      return 1;
    }
    CleanStrings(&response);
    for (const v1::Incident& incident : response.incidents()) {
      if (place.Pass(incident)) std::cout << IncidentCsvLine(incident);
    }
    if (response.incidents_size() < kPart || !std::cout.flush()) break;
    place.Continue(&request);
  }
  return std::cout.good() ? 0 : 1;
}

}  // namespace rollcall
