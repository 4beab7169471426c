// SPDX-License-Identifier: Apache-2.0
// Compares two incidents, fact by fact. Pure.
#pragma once

#include <string>
#include <vector>

#include "rollcall/v1/incident.pb.h"

namespace rollcall {

// One fact of both; empty if an incident lacks it.
struct ComparedFact {
  std::string name, first, second;

  bool differs() const { return first != second; }
};

struct Comparison {
  // Both are the same mistake, as far as the reports show: cause, operation, communicator and place
  // of the culprits (SignatureOf() in daemon/history/incident_groups.h).
  bool is_alike = false;
  std::vector<ComparedFact> facts;  // of which one of them contains something
};

Comparison Compare(const v1::Incident& first, const v1::Incident& second);

// A line that states whether they are alike and what differs, then a table of at most 100 columns.
// `names`: of the two, as they were typed.
std::string ComparisonToText(const Comparison& comparison, const std::string& first_name,
                             const std::string& second_name);

std::string ComparisonToJson(const Comparison& comparison);

}  // namespace rollcall
