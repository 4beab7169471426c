// SPDX-License-Identifier: Apache-2.0
// Which receivers get the alerts of an incident: the receivers of --alert all of them, the
// receivers of a file of routes what its routes send to them. Pure.
//
//   receivers:
//     - name: on-call
//       kind: opsgenie
//       file: /etc/rollcall/opsgenie-key
//     - name: team
//       kind: email
//       target: team@example.com
//   routes:
//     - tenant: ml
//       job: "llm-*"
//       certainty: certain
//       to: on-call
//       continue: true
//     - to: team
//
// The first route that fits an incident decides. With `continue`, the routes below it are asked as
// well.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/alerts/alert_target.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

// A member that is empty fits every incident.
struct AlertRoute {
  std::string tenant;  // a pattern of fnmatch(3), as is `job`
  std::string job;
  std::string certainty;            // the least one of the root cause
  std::vector<std::string> causes;  // one of them is the root cause
  std::vector<size_t> to;           // indexes of receivers
  bool goes_on = false;
};

struct AlertRoutes {
  std::vector<AlertTarget> receivers;
  std::vector<AlertRoute> routes;
};

// An error names the line and what to write there. It never shows a target.
absl::StatusOr<AlertRoutes> ParseAlertRoutes(const std::string& text);

bool FitsRoute(const AlertRoute& route, const v1::Incident& incident);

// The indexes of AlertRoute::to that the incident goes to, ascending.
std::vector<size_t> RoutedReceivers(const std::vector<AlertRoute>& routes,
                                    const v1::Incident& incident);

}  // namespace rollcall
