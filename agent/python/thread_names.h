// SPDX-License-Identifier: Apache-2.0
// What Python's threading calls a thread: the attribute _name of its Thread object. No other value
// is read.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "agent/python/objects.h"

namespace rollcall {

class PythonThreadNames {
 public:
  // Both must outlive this object.
  PythonThreadNames(const PythonLayout& layout, PythonObjects* objects)
      : layout_(layout), objects_(objects) {}

  // `thread`: address of a Thread object. "": its name could not be read.
  std::string ReadName(uint64_t thread);

 private:
  // The table of names that a dict, or all objects of a class, share.
  struct Keys {
    uint64_t entries = 0;  // address of the first
    uint64_t count = 0;
    uint32_t entry_bytes = 0;
    uint32_t key = 0;  // within an entry; the value follows it
  };
  struct Place {
    uint64_t index = 0;
    uint64_t value_address = 0;  // where a dict that shares nothing has it
  };

  uint64_t FindName(uint64_t thread);
  uint64_t FindInDict(uint64_t dict);
  uint64_t FindInValues(uint64_t type, uint64_t values);
  uint64_t ReadReference(uint64_t address);
  const Place* FindKey(uint64_t keys_address);
  bool ReadKeys(uint64_t address, Keys* keys);

  const PythonLayout& layout_;
  PythonObjects* const objects_;
  std::map<uint64_t, Place> places_;  // by address of the keys: all threads of a class share them
};

}  // namespace rollcall
