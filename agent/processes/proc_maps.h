// SPDX-License-Identifier: Apache-2.0
// Parses /proc/PID/maps: the mappings of a process and their files.
//
// The parser skips malformed lines.
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
  uint64_t device = 0;  // of the file, as for stat() (except on btrfs)
  uint64_t inode = 0;   // 0 if there is no file
  bool readable = false;
  bool writable = false;
  bool executable = false;
  bool deleted = false;  // the file has been unlinked; `path` is its former path
  std::string path;      // a file, "[stack]" and its like, or empty
};

// False if the line is malformed.
bool ParseProcMap(absl::string_view line, ProcMap* map);

// Returns the mappings in ascending order of addresses.
std::vector<ProcMap> ParseProcMaps(absl::string_view text);

// Returns the mapping that contains `address`, or nullptr. `maps` must be ascending.
const ProcMap* FindMap(const std::vector<ProcMap>& maps, uint64_t address);

// Whether the open file is the one that is mapped. Its path may lead to another file by now.
bool IsMapped(int fd, const ProcMap& map);

}  // namespace rollcall
