// SPDX-License-Identifier: Apache-2.0
// Another process's memory, read without stopping it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace rollcall {

class ProcessMemory {
 public:
  virtual ~ProcessMemory() = default;

  // All `size` bytes, or false: nothing is mapped there, or the process is gone. Never allocates.
  virtual bool Read(uint64_t address, void* to, size_t size) = 0;

  template <typename Value>
  bool ReadValue(uint64_t address, Value* value) {
    return Read(address, value, sizeof(*value));
  }
};

// By process_vm_readv, which the kernel permits to whoever may trace the process.
class TracerMemory : public ProcessMemory {
 public:
  explicit TracerMemory(pid_t pid) : pid_(pid) {}
  bool Read(uint64_t address, void* to, size_t size) override;

 private:
  const pid_t pid_;
};

// By a descriptor of /proc/PID/mem. Takes it over.
class FileMemory : public ProcessMemory {
 public:
  explicit FileMemory(int fd) : fd_(fd) {}
  ~FileMemory() override;
  FileMemory(const FileMemory&) = delete;
  FileMemory& operator=(const FileMemory&) = delete;
  bool Read(uint64_t address, void* to, size_t size) override;

 private:
  const int fd_;
};

}  // namespace rollcall
