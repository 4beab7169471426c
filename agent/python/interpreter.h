// SPDX-License-Identifier: Apache-2.0
// Finds CPython in a process: where its state lies and how that is laid out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/processes/process_memory.h"
#include "agent/processes/stack_sample.h"
#include "agent/symbols/module_files.h"
#include "interpose/python_layout.h"

namespace rollcall {

struct PythonInterpreter {
  PythonLayout layout;
  std::string module;        // path of the file that holds the interpreter
  uint64_t runtime = 0;      // address of _PyRuntime in the process
  uint64_t code_type = 0;    // of PyCode_Type; 0: not known, and so on
  uint64_t string_type = 0;  // of PyUnicode_Type
  uint64_t bytes_type = 0;   // of PyBytes_Type
};

// Keeps what it learns of a file: all ranks of a host have the same interpreter. Not thread-safe.
class PythonFinder {
 public:
  // nullopt: the process has no CPython of a version that is known. `problem` then says so if it
  // has one after all.
  std::optional<PythonInterpreter> Find(const RawSample& sample, ModuleFiles* files,
                                        ProcessMemory* memory, std::string* problem);

 private:
  std::map<std::string, std::vector<uint64_t>> symbols_;  // by build id or name of the file
};

}  // namespace rollcall
