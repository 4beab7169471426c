// SPDX-License-Identifier: Apache-2.0
// Reads CPython's objects from a process's memory. The memory may change during the read, or be
// damaged. So every read of an address may fail, every object must have the expected type, and
// every length has a limit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "agent/processes/process_memory.h"
#include "agent/processes/stack_sample.h"
#include "agent/python/interpreter.h"

namespace rollcall {

// Caches the pages that were read since Clear(). Frames lie close together, and one system call for
// each frame would stop the thread for longer.
class PageCopies {
 public:
  explicit PageCopies(ProcessMemory* memory);
  bool Read(uint64_t address, void* to, size_t size);
  void Clear();

 private:
  static constexpr size_t kPageBytes = 4096;
  static constexpr size_t kSlots = 64;
  const uint8_t* Page(uint64_t number);

  ProcessMemory* const memory_;
  std::array<uint64_t, kSlots> numbers_;
  std::unique_ptr<uint8_t[]> bytes_;
};

// From 3.14 on the low bits of references are tags.
inline constexpr uint64_t kReferenceMask = ~uint64_t{7};

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

  // Reads the fixed part of a code object, `size` bytes.
  bool ReadCode(uint64_t address, uint8_t* object, size_t size);
  // Reads what names a code object and its lines. False if it is not one, or its name is
  // unreadable.
  bool ReadCodeNames(uint64_t address, PythonCode* code);
  // Reads a string as UTF-8, at most its first `most` characters, which are up to four bytes each.
  // `is_cut`: whether it has more; nullptr if the caller does not ask.
  bool ReadString(uint64_t address, size_t most, std::string* text, bool* is_cut = nullptr);
  bool ReadBytes(uint64_t address, size_t most, std::string* bytes);

 private:
  bool HasType(const uint8_t* object, uint64_t type) const;

  const PythonInterpreter& interpreter_;
  const PythonLayout& layout_;
  PageCopies* const pages_;
};

}  // namespace rollcall
