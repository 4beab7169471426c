// SPDX-License-Identifier: Apache-2.0
// Converts the daemon's own incident to the public one, for people, scripts and the wire.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "daemon/diagnosis/life/incident_life.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

// The longest lists of culprits and of ranks in a message. Totals and ranges beside a list cover
// all of them.
inline constexpr size_t kMostListed = 1024;
inline constexpr size_t kMostEdges = 64;  // of a chain
inline constexpr size_t kMostSites = 64;  // lines of the program at which ranks wait

// Converts everything but `stacks`, `report_path` and `rollcall_version`, which the caller adds.
// Replaces bytes that are not UTF-8 with '?', because they would make the whole message unreadable.
v1::Incident ToProto(const Incident& incident);
// The fields that it may set.
const std::vector<const google::protobuf::FieldDescriptor*>& DiagnosedFields();

v1::Verdict ToProto(const Verdict& verdict);

v1::Call ToProto(const CallArgs& call, uint64_t position);

std::string Utf8(const std::string& text);

}  // namespace rollcall
