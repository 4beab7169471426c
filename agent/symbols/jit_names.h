// SPDX-License-Identifier: Apache-2.0
// Names of code that a process generated at run time, from the map that just-in-time compilers
// write for profilers: /tmp/perf-PID.map in the process's root (Linux, tools/perf/Documentation/
// jit-interface.txt). Python writes it with -X perf, Java with an agent, V8 and LuaJIT on demand.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace rollcall {

class JitNames {
 public:
  // Parses lines of "START SIZE name", numbers in hexadecimal, and skips all others. If two lines
  // have the same start, the last one counts: the compiler replaced the code.
  static JitNames Parse(absl::string_view text);

  // Reads the map of a process. Empty if there is no file, or it belongs to another user.
  static JitNames ReadForProcess(const std::string& proc_root, pid_t pid);

  // Returns the name of the code at `address`; empty if unknown.
  std::string Find(uint64_t address) const;

 private:
  struct Code {
    uint64_t end = 0;
    std::string name;
  };
  std::map<uint64_t, Code> code_;  // by start address
};

}  // namespace rollcall
