// SPDX-License-Identifier: Apache-2.0
// Reads Python's pickle format as far as plain data goes: None, bool, int,
// float, str, bytes, tuple, list, dict. Whatever could import, build or call
// something is refused by name, so that reading a dump can execute nothing.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"

namespace rollcall {

// Protocols 2 to 5. Tuples come out as arrays, keys as strings. Errors
// (kInvalidArgument) say what is wrong and at which byte; depth, size and
// repetition are bounded, so that a small hostile file cannot grow large.
absl::StatusOr<nlohmann::json> ReadPickle(const std::string& bytes);

}  // namespace rollcall
