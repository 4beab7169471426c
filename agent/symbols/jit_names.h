// SPDX-License-Identifier: Apache-2.0
// Names of code that a process has made at run time, from the map that just-in-time compilers write
// for profilers: /tmp/perf-PID.map, as the process sees /tmp (Linux, tools/perf/Documentation/
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
  // Lines of "START SIZE name", numbers in hex; others are passed over. Where code was replaced the
  // last line holds.
  static JitNames Parse(absl::string_view text);

  // Nothing if there is no such file, or another user's.
  static JitNames OfProcess(const std::string& proc_root, pid_t pid);

  // "" if it is not known.
  std::string Find(uint64_t address) const;

 private:
  struct Code {
    uint64_t end = 0;
    std::string name;
  };
  std::map<uint64_t, Code> code_;  // by its start
};

}  // namespace rollcall
