// SPDX-License-Identifier: Apache-2.0
// /proc/PID/maps as values: which file lies where in a process.
//
// A line that does not parse is skipped, never guessed at.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace rollcall {

struct ProcMap {
  uint64_t start = 0;
  uint64_t end = 0;     // one past the last byte
  uint64_t offset = 0;  // in the file, of `start`
  uint64_t device = 0;  // of the file, as stat() gives it (btrfs gives another there)
  uint64_t inode = 0;   // 0 where there is no file
  bool readable = false;
  bool writable = false;
  bool executable = false;
  bool deleted = false;  // the file has been unlinked since; `path` is what it was called
  std::string path;      // a file, "[stack]" and its like, or empty
};

// Ascending by address, as the kernel gives them.
std::vector<ProcMap> ParseProcMaps(absl::string_view text);

// The mapping that holds `address`, or nullptr. `maps` must be ascending.
const ProcMap* FindMap(const std::vector<ProcMap>& maps, uint64_t address);

}  // namespace rollcall
