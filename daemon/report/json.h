// SPDX-License-Identifier: Apache-2.0
// incident.json: proto3 JSON with the proto's own field names. Every field is present, even empty
// lists, so that scripts need no check for missing fields. Only unset messages and times are
// absent.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "rollcall/v1/incident.pb.h"

namespace rollcall {

// Fails only for a message that proto3 JSON cannot express (a time beyond year 9999).
// `with_whitespace` formats the JSON for people.
absl::StatusOr<std::string> ToJson(const v1::Incident& incident, bool with_whitespace = true);

}  // namespace rollcall
