// SPDX-License-Identifier: Apache-2.0
// A file in memory, for code that reads files.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string_view>

#include "fuzz_target.h"

namespace rollcall {
namespace fuzz {

class MemoryFile {
 public:
  MemoryFile() : fd_(memfd_create("rollcall-fuzz", MFD_CLOEXEC)) {
    Promise(fd_ >= 0, "there is memory for a file");
  }
  ~MemoryFile() { close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int fd() const { return fd_; }
  // For code that closes its descriptor.
  int Duplicate() const { return dup(fd_); }

  void Resize(uint64_t size) {
    Promise(ftruncate(fd_, static_cast<off_t>(size)) == 0, "the file has that size");
  }
  // Writes nothing behind `limit`.
  void Write(uint64_t offset, std::string_view bytes, uint64_t limit) {
    if (offset >= limit || bytes.empty()) return;
    bytes = bytes.substr(0, limit - offset);
    Promise(pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset)) ==
                static_cast<ssize_t>(bytes.size()),
            "the file takes bytes");
  }

 private:
  const int fd_;
};

}  // namespace fuzz
}  // namespace rollcall
