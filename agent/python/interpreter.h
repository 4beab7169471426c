// SPDX-License-Identifier: Apache-2.0
// Finds CPython in a process: the address and the layout of its state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "agent/processes/process_memory.h"
#include "agent/processes/stack_sample.h"
#include "agent/python/python_symbols.h"
#include "interpose/python/python_layout.h"

namespace rollcall {

struct PythonInterpreter {
  PythonLayout layout;
  std::string module;          // path of the file with the interpreter
  uint64_t runtime = 0;        // address of _PyRuntime in the process
  uint64_t code_type = 0;      // of PyCode_Type; here and below, 0 if unknown
  uint64_t string_type = 0;    // of PyUnicode_Type
  uint64_t bytes_type = 0;     // of PyBytes_Type
  bool only_resident = false;  // as FoundSymbols
};

// `resident`: reads the same memory, and waits for no file (ResidentMemory). nullopt if the process
// has no CPython of a supported version. If it has an unsupported one, the function sets `problem`.
std::optional<PythonInterpreter> FindPython(const RawSample& sample, PythonSymbols* symbols,
                                            ProcessMemory* memory, ProcessMemory* resident,
                                            std::string* problem);

}  // namespace rollcall
