// SPDX-License-Identifier: Apache-2.0
// A file that lies in this process's memory only and has a path, for libraries that read a file
// again and again, such as gRPC. Nothing reaches a disk, and nothing stays when the process ends.
//
// Not thread-safe: one owner calls it. Readers on other threads see the old content or the new one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace rollcall {

class MemoryFile {
 public:
  MemoryFile() = default;
  // Does not close the file: gRPC may still read it, and would then read another file that got the
  // same number.
  ~MemoryFile() = default;
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // Replaces the whole content at once. Each content has another time of modification, in seconds.
  absl::Status Replace(std::string_view content);

  // "/proc/self/fd/NUMBER"; "" before the first Replace().
  const std::string& path() const { return path_; }

 private:
  int fd_ = -1;
  std::string path_;
  int64_t modified_s_ = 0;
};

}  // namespace rollcall
