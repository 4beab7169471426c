// SPDX-License-Identifier: Apache-2.0
#include "daemon/alerts/alert_room.h"

#include <algorithm>
#include <map>
#include <string>

namespace rollcall {
namespace {

using Key = std::string (*)(const v1::Incident&);

std::string TenantOf(const v1::Incident& incident) { return incident.tenant(); }

// The owner of the culprit, as the kernel reports it; empty if unknown.
std::string UserOf(const v1::Incident& incident) {
  if (incident.verdicts().empty() || incident.verdicts(0).culprits().empty()) return "";
  const v1::Culprit& culprit = incident.verdicts(0).culprits(0);
  return culprit.has_uid() ? std::to_string(culprit.uid()) : "";
}

std::string JobOf(const v1::Incident& incident) { return incident.job(); }

}  // namespace

size_t FindAlertThatMakesRoom(const std::vector<const v1::Incident*>& waiting) {
  std::vector<size_t> left(waiting.size());
  for (size_t i = 0; i < left.size(); ++i) left[i] = i;
  for (const Key key : {&TenantOf, &UserOf, &JobOf}) {
    std::map<std::string, std::vector<size_t>> parts;
    for (const size_t i : left) parts[key(*waiting[i])].push_back(i);
    const auto most = std::max_element(
        parts.begin(), parts.end(),
        [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    left = most->second;
  }
  return left.front();
}

}  // namespace rollcall
