// SPDX-License-Identifier: Apache-2.0
// Where variables of CPython are in a file that a process has mapped.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "agent/processes/proc_maps.h"
#include "agent/processes/process_memory.h"
#include "agent/symbols/module_files.h"

namespace rollcall {

struct FoundSymbols {
  // For each name, how far behind the mapping of the file's beginning the variable is; 0 if not in
  // the file, or the file cannot be read.
  std::vector<uint64_t> distances;
  // The file's server does not answer: only what the process has in memory can be read.
  bool only_resident = false;
};

class PythonSymbols {
 public:
  virtual ~PythonSymbols() = default;

  // `first`: the mapping of the file's beginning in process `pid`, whose memory is `memory`.
  virtual FoundSymbols Find(pid_t pid, const ProcMap& first, const std::vector<std::string>& names,
                            ProcessMemory* memory) = 0;
};

// Reads the file, which blocks while its file server does not answer. Caches the symbols of a file,
// since all ranks of a host have the same one: call it with the same names always. Not thread-safe.
class SymbolsInFiles : public PythonSymbols {
 public:
  explicit SymbolsInFiles(std::string proc_root) : files_(std::move(proc_root)) {}

  FoundSymbols Find(pid_t pid, const ProcMap& first, const std::vector<std::string>& names,
                    ProcessMemory* memory) override;
  void LeaveOut(std::vector<uint64_t> devices, std::vector<FileId> files) {
    files_.LeaveOut(std::move(devices), std::move(files));
  }

 private:
  ModuleFiles files_;
  std::map<std::string, std::vector<uint64_t>> known_;  // by build id or name of the file
};

}  // namespace rollcall
