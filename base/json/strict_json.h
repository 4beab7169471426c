// SPDX-License-Identifier: Apache-2.0
// Reads JSON from strangers: objects with a name twice are refused, because two readers could
// understand them differently. For the .cc files of this folder only.
#pragma once

#include <nlohmann/json.hpp>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace rollcall {

// An object. An error if the text is not a JSON object, is deeper than eight levels, or has a name
// twice in one object. Texts in the result have no control characters.
absl::StatusOr<nlohmann::json> ParseStrictObject(absl::string_view text);

// The member of that name if it is a text, else "".
std::string TextMember(const nlohmann::json& object, const char* name);

}  // namespace rollcall
