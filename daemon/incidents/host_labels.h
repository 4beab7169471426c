// SPDX-License-Identifier: Apache-2.0
// What an operator sets for hosts and no host reports: its switch, its rack. Lines of
// --host-labels:
//
//   node-17  switch=leaf-3 rack=r12    # the rest of a line is a comment
//
// Pure.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

using HostLabels = std::map<std::string, std::map<std::string, std::string>>;  // host, name, value

// kInvalidArgument names the line. A host may have several lines.
absl::StatusOr<HostLabels> ParseHostLabels(const std::string& text);

// Gives the incident the labels of the hosts of its root cause's culprits, instead of those it has.
void SetHostLabels(const HostLabels& labels, v1::Incident* incident);

}  // namespace rollcall
