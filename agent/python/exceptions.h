// SPDX-License-Identifier: Apache-2.0
// Reads the exception that a thread is handling (in an except, a finally or an __exit__()) from the
// memory of its interpreter: type, arguments and the line that raised it. It runs nothing, so an
// exception whose __str__() makes its text has that of its arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "agent/processes/stack_sample.h"
#include "agent/python/objects.h"

namespace rollcall {

class PythonExceptions {
 public:
  // Both must outlive this object.
  PythonExceptions(const PythonLayout& layout, PythonObjects* objects)
      : layout_(layout), objects_(objects) {}

  // `state`: address of the thread's state. An empty type: it handles none, or it cannot be read.
  PythonException ReadHandled(uint64_t state);

 private:
  uint64_t FindHandled(uint64_t state);
  uint64_t ReadReference(uint64_t address);
  std::string ReadTypeName(uint64_t type);
  std::string ReadArguments(uint64_t exception, bool quotes_one);
  std::string ReadArgument(uint64_t object, bool quotes);
  std::string ReadInteger(uint64_t object);
  uint64_t ReadTypeFlags(uint64_t object);
  std::vector<uint64_t> ListEntries(uint64_t traceback);
  void FindRaisingLine(uint64_t traceback, PythonException* found);
  bool ReadCodeOfFrame(uint64_t frame, PythonCode* code);
  int ReadLine(uint64_t entry, const PythonCode& code);

  const PythonLayout& layout_;
  PythonObjects* const objects_;
};

}  // namespace rollcall
