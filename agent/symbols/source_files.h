// SPDX-License-Identifier: Apache-2.0
// The Python sources of one process, for the blocks around its lines. The process names the files,
// and it is not trusted: a file is read as the process sees it, only if the process's user may read
// it, and only up to limits.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "agent/symbols/module_files.h"
#include "agent/symbols/source_blocks.h"

namespace rollcall {

class SourceFiles {
 public:
  // `files` decides what to leave out; it must outlive this object.
  SourceFiles(std::string proc_root, pid_t pid, const ModuleFiles& files);

  // False if the file cannot be read, is too large, or is not in Python.
  // `returns_at`: of ReturnBefore().
  bool FindBlocks(const std::string& file, int line, std::vector<SourceBlock>* blocks,
                  int32_t* returns_at);

 private:
  const std::string& TextOf(const std::string& file);
  std::string Read(const std::string& file) const;

  const std::string proc_root_;
  const pid_t pid_;
  const ModuleFiles& files_;
  std::map<std::string, std::string> texts_;  // by file; empty if it cannot be read
  size_t bytes_ = 0;
};

}  // namespace rollcall
