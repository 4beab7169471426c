// SPDX-License-Identifier: Apache-2.0
// Stores the text of each tensor shape once: a job has few shapes and millions of
// records that refer to them.
#pragma once

#include <cstdint>
#include <string>

namespace rollcall {

// The stored copy of "[1024, 4096]"; it lives as long as the program. nullptr for "",
// for a text too long to be a shape, and when the store is full. Any thread may call it.
const std::string* InternShape(const std::string& text);

// The number of shapes since the last call for which the store had no room.
uint64_t TakeDroppedShapes();

}  // namespace rollcall
