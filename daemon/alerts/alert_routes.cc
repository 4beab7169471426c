// SPDX-License-Identifier: Apache-2.0
#include "daemon/alerts/alert_routes.h"

#include <fnmatch.h>

#include <algorithm>
#include <set>

#include "daemon/model/verdict.h"

namespace rollcall {
namespace {

bool FitsPattern(const std::string& pattern, const std::string& name) {
  return pattern.empty() || fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

// -1 for no certainty.
int Rank(const std::string& certainty) {
  for (const Certainty known : {Certainty::kPossible, Certainty::kLikely, Certainty::kCertain}) {
    if (certainty == CertaintyName(known)) return static_cast<int>(known);
  }
  return -1;
}

}  // namespace

bool FitsRoute(const AlertRoute& route, const v1::Incident& incident) {
  const v1::Verdict root = incident.verdicts().empty() ? v1::Verdict() : incident.verdicts(0);
  return FitsPattern(route.tenant, incident.tenant()) && FitsPattern(route.job, incident.job()) &&
         Rank(root.certainty()) >= Rank(route.certainty) &&
         (route.causes.empty() ||
          std::find(route.causes.begin(), route.causes.end(), root.cause()) != route.causes.end());
}

std::vector<size_t> RoutedReceivers(const std::vector<AlertRoute>& routes,
                                    const v1::Incident& incident) {
  std::set<size_t> receivers;
  for (const AlertRoute& route : routes) {
    if (!FitsRoute(route, incident)) continue;
    receivers.insert(route.to.begin(), route.to.end());
    if (!route.goes_on) break;
  }
  return {receivers.begin(), receivers.end()};
}

}  // namespace rollcall
