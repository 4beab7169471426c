// SPDX-License-Identifier: Apache-2.0
// Reads plain data in Python's pickle format: None, bool, int, float, str, bytes,
// tuple, list, dict. The reader refuses every opcode that imports, builds or calls
// something, and names the opcode. So no dump can execute code.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"

namespace rollcall {

// Reads protocols 2 to 5. Tuples become arrays, and keys become strings. An error
// (kInvalidArgument) gives the problem and the byte. Depth, size and repetition are limited, so
// that a small hostile file cannot fill the memory.
absl::StatusOr<nlohmann::json> ReadPickle(const std::string& bytes);

}  // namespace rollcall
