// SPDX-License-Identifier: Apache-2.0
// Converts the daemon's own incident to the public one, for people, scripts and the wire.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/diagnosis/incidents.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

// Everything but `stacks`, `report_path` and `rollcall_version`, which the
// caller adds. Bytes that are not UTF-8 become '?': they would make the whole
// message unreadable.
v1::Incident ToProto(const Incident& incident);

v1::Verdict ToProto(const Verdict& verdict);

v1::Call ToProto(const CallArgs& call, uint64_t position);

std::string Utf8(const std::string& text);

}  // namespace rollcall
