// SPDX-License-Identifier: Apache-2.0
// Finds and opens the ELF files that a process has mapped, and keeps them open across samples.
//
// Files are opened through /proc/PID/root, so that a container's files are its own; by
// /proc/PID/map_files where the path was deleted or replaced; and, once the process is gone, by
// path where the inode is still the mapped one. Only regular files are ever opened for reading:
// opening a device can act on it. The process may run on or end meanwhile. Not thread-safe.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "absl/status/statusor.h"
#include "agent/processes/stack_sample.h"
#include "agent/symbols/elf_file.h"

namespace rollcall {

class ModuleFiles {
 public:
  explicit ModuleFiles(std::string proc_root = "/proc");

  // The file behind `map` in process `pid`. The vdso, which has no file, is this process's own:
  // the kernel gives all processes the same one.
  absl::StatusOr<std::shared_ptr<ElfFile>> Find(pid_t pid, const ProcMap& map);

 private:
  // Device, inode, size and time of change in ns: another build under the same name differs.
  using FileKey = std::tuple<uint64_t, uint64_t, int64_t, int64_t>;

  absl::StatusOr<std::shared_ptr<ElfFile>> Vdso();
  int OpenPath(pid_t pid, const ProcMap& map) const;

  std::string proc_root_;
  std::map<FileKey, std::shared_ptr<ElfFile>> files_;
  std::shared_ptr<ElfFile> vdso_;
};

struct LocatedAddress {
  const ProcMap* map = nullptr;          // nullptr: nothing is mapped there
  std::shared_ptr<ElfFile> file;         // nullptr: no file, or it could not be read
  uint64_t file_offset = 0;              // of the address, where there is a file
  std::optional<uint64_t> file_address;  // the address as the file numbers it
};

// The modules of one sample: from an address in the process to a place in a file.
class SampleModules {
 public:
  // Both must outlive this object.
  SampleModules(const RawSample& sample, ModuleFiles* files) : sample_(sample), files_(files) {}

  LocatedAddress Locate(uint64_t address);

 private:
  std::shared_ptr<ElfFile> FindFile(const ProcMap& map);

  const RawSample& sample_;
  ModuleFiles* files_;
  std::map<std::pair<uint64_t, std::string>, std::shared_ptr<ElfFile>> opened_;  // inode and path
};

}  // namespace rollcall
