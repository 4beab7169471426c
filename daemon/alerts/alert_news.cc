// SPDX-License-Identifier: Apache-2.0
#include "daemon/alerts/alert_news.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace rollcall {

std::string RootCause(const v1::Incident& incident) {
  return incident.verdicts().empty() ? "" : incident.verdicts(0).cause();
}

std::string WhatIsSaid(const v1::Incident& incident) {
  if (incident.verdicts().empty()) return "";
  const v1::Verdict& root = incident.verdicts(0);
  std::vector<std::string> culprits;
  for (const v1::Culprit& culprit : root.culprits()) {
    culprits.push_back(absl::StrCat(culprit.rank(), "@", culprit.host()));
  }
  std::sort(culprits.begin(), culprits.end());
  const std::string line = root.culprits().empty() ? "" : root.culprits(0).at();
  const std::string advice = root.advice().empty() ? "" : root.advice(0).id();
  // The list of culprits has a limit, the ranges have none.
  return absl::StrCat(root.cause(), " ", absl::StrJoin(culprits, " "), " ", root.culprit_ranks(),
                      "\n", line, "\n", advice, "\n", incident.repeat().number());
}

}  // namespace rollcall
