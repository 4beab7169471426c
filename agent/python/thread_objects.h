// SPDX-License-Identifier: Apache-2.0
// Reads what Python's threading has of a thread in its Thread object: the attributes _name and
// _daemonic. Reads no other value.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "agent/python/objects.h"

namespace rollcall {

class PythonThreadObjects {
 public:
  // Both must outlive this object.
  PythonThreadObjects(const PythonLayout& layout, PythonObjects* objects)
      : layout_(layout), objects_(objects) {}

  // `thread`: address of a Thread object. Empty if the name could not be read.
  std::string ReadName(uint64_t thread);
  // Whether Python waits for the thread before it ends. False also if that could not be read.
  bool KeepsProcess(uint64_t thread);

 private:
  // The table of keys of a dict. All objects of a class may share one.
  struct Keys {
    uint64_t entries = 0;  // address of the first
    uint64_t count = 0;
    uint32_t entry_bytes = 0;
    uint32_t key = 0;  // within an entry; the value follows it
  };
  struct KeySlot {
    uint64_t index = 0;
    uint64_t value_address = 0;  // of the value, in a dict that does not share its keys
  };

  uint64_t FindAttribute(uint64_t thread, const char* name);
  uint64_t FindInDict(uint64_t dict, const char* name);
  uint64_t FindInValues(uint64_t type, uint64_t values, const char* name);
  uint64_t ReadReference(uint64_t address);
  const KeySlot* FindKey(uint64_t keys_address, const std::string& name);
  bool ReadKeys(uint64_t address, Keys* keys);

  const PythonLayout& layout_;
  PythonObjects* const objects_;
  // Keyed by the address of the keys, and name.
  std::map<std::pair<uint64_t, std::string>, KeySlot> key_slots_;
};

}  // namespace rollcall
