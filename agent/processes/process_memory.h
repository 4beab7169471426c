// SPDX-License-Identifier: Apache-2.0
// Reads another process's memory without stopping the process.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/unique_fd.h"

namespace rollcall {

class ProcessMemory {
 public:
  virtual ~ProcessMemory() = default;

  // Reads all `size` bytes. False if some of them are not mapped, or the process has ended. Never
  // allocates.
  virtual bool Read(uint64_t address, void* to, size_t size) = 0;

  template <typename Value>
  bool ReadValue(uint64_t address, Value* value) {
    return Read(address, value, sizeof(*value));
  }
};

// Reads by process_vm_readv(), which needs the permission to trace the process.
class TracerMemory : public ProcessMemory {
 public:
  explicit TracerMemory(pid_t pid) : pid_(pid) {}
  bool Read(uint64_t address, void* to, size_t size) override;

 private:
  const pid_t pid_;
};

// Reads by a descriptor of /proc/PID/mem.
class FileMemory : public ProcessMemory {
 public:
  explicit FileMemory(UniqueFd fd) : fd_(std::move(fd)) {}
  bool Read(uint64_t address, void* to, size_t size) override;

 private:
  const UniqueFd fd_;
};

// Reads only what the process has in memory now, of anything else. So a read never waits for a file
// that is mapped: its file server may not answer. Fails where the kernel does not show what the
// process has in memory. All must outlive this object.
class ResidentMemory : public ProcessMemory {
 public:
  ResidentMemory(ProcessMemory* memory, const std::string& proc_root, pid_t pid);
  bool Read(uint64_t address, void* to, size_t size) override;

  // How many of these bytes are in memory, up to the first page that is not. All of them where the
  // kernel does not show it. Never allocates.
  size_t CountResident(uint64_t address, size_t size) const;

 private:
  ProcessMemory* const memory_;
  const UniqueFd pages_;  // /proc/PID/pagemap
};

}  // namespace rollcall
