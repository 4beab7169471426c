// SPDX-License-Identifier: Apache-2.0
// Stores the text of each tensor shape once: a job has few shapes and millions of
// records that refer to them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace rollcall {

// What one job has added to the store. No lock: the job's own guards it.
struct ShapeShare {
  size_t added = 0;
  uint64_t dropped = 0;  // shapes that were too long or had no room; the owner resets it
};

// The stored copy of "[1024, 4096]"; it lives as long as the program, because reports refer to it
// after their job is gone. nullptr for "", and for a shape without room, which it counts. Any
// thread may call it. `share`: of the job that has the shape; nullptr means only the store's limit
// counts.
const std::string* InternShape(const std::string& text, ShapeShare* share = nullptr);

}  // namespace rollcall
