// SPDX-License-Identifier: Apache-2.0
// Reads CPython's objects out of a process's memory. Every address is checked by reading, every
// object by its type, every length by a limit: what is read may be changing, or damaged.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "agent/processes/process_memory.h"
#include "agent/python/interpreter.h"

namespace rollcall {

// A copy of the pages that were read since Forget(): frames lie close together, and a system call
// for each would stop the thread for longer.
class PageCopies {
 public:
  explicit PageCopies(ProcessMemory* memory);
  bool Read(uint64_t address, void* to, size_t size);
  void Forget();

 private:
  static constexpr size_t kPageBytes = 4096;
  static constexpr size_t kSlots = 64;
  const uint8_t* Page(uint64_t number);

  ProcessMemory* const memory_;
  std::array<uint64_t, kSlots> numbers_;
  std::unique_ptr<uint8_t[]> bytes_;
};

template <typename Value>
Value ReadField(const uint8_t* object, uint32_t offset) {
  Value value;
  std::memcpy(&value, object + offset, sizeof(value));
  return value;
}

class PythonObjects {
 public:
  // Both must outlive this object.
  PythonObjects(const PythonInterpreter& interpreter, PageCopies* pages)
      : interpreter_(interpreter), layout_(interpreter.layout), pages_(pages) {}

  bool Read(uint64_t address, void* to, size_t size) { return pages_->Read(address, to, size); }
  bool ReadPointer(uint64_t address, uint64_t* value) {
    return Read(address, value, sizeof(*value));
  }

  // The fixed part of a code object.
  bool ReadCode(uint64_t address, uint8_t* object, size_t size);
  // As UTF-8, and of it the first `most` characters.
  bool ReadString(uint64_t address, size_t most, std::string* text);
  bool ReadBytes(uint64_t address, size_t most, std::string* bytes);

 private:
  bool HasType(const uint8_t* object, uint64_t type) const;

  const PythonInterpreter& interpreter_;
  const PythonLayout& layout_;
  PageCopies* const pages_;
};

}  // namespace rollcall
