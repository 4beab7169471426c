// SPDX-License-Identifier: Apache-2.0
// Finds CPython in a process: the address and the layout of its state.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/processes/process_memory.h"
#include "agent/processes/stack_sample.h"
#include "agent/symbols/module_files.h"
#include "interpose/python/python_layout.h"

namespace rollcall {

struct PythonInterpreter {
  PythonLayout layout;
  std::string module;        // path of the file with the interpreter
  uint64_t runtime = 0;      // address of _PyRuntime in the process
  uint64_t code_type = 0;    // of PyCode_Type; here and below, 0: not known
  uint64_t string_type = 0;  // of PyUnicode_Type
  uint64_t bytes_type = 0;   // of PyBytes_Type
};

// Caches the symbols of a file, since all ranks of a host have the same one. Not thread-safe.
class PythonFinder {
 public:
  // nullopt: the process has no CPython of a supported version. If it has an unsupported one, the
  // function sets `problem`.
  std::optional<PythonInterpreter> Find(const RawSample& sample, ModuleFiles* files,
                                        ProcessMemory* memory, std::string* problem);

 private:
  std::map<std::string, std::vector<uint64_t>> symbols_;  // by build id or name of the file
};

}  // namespace rollcall
