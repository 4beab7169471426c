// SPDX-License-Identifier: Apache-2.0
// Finds and opens the ELF files that a process has mapped, and keeps them open across samples.
//
// Opens a file through /proc/PID/root, so that the file is that of the process's container; through
// /proc/PID/map_files if the path was deleted or replaced; and, after the process has ended, by its
// path if inode and device are still the mapped ones. On overlayfs and btrfs maps and stat() show
// different devices, so there the inode decides alone. Opens only regular files for reading,
// because opening a device can have effects. The process may run or end at any time. Not
// thread-safe.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/processes/stack_sample.h"
#include "agent/symbols/elf_file.h"
#include "base/unique_fd.h"

namespace rollcall {

class ModuleFiles {
 public:
  explicit ModuleFiles(std::string proc_root = "/proc");

  // Find() opens none of these: what a device has, and these files.
  void LeaveOut(std::vector<uint64_t> devices, std::vector<FileId> files);
  bool IsLeftOut(const FileId& file) const;

  // Returns the file of the mapping `map` in process `pid`. The vdso has no file; the function
  // returns this process's own, because the kernel maps the same vdso into all processes.
  absl::StatusOr<std::shared_ptr<ElfFile>> Find(pid_t pid, const ProcMap& map);

 private:
  // Device, inode, size and modification time in ns: two builds with the same name differ.
  using FileKey = std::tuple<uint64_t, uint64_t, int64_t, int64_t>;

  absl::StatusOr<std::shared_ptr<ElfFile>> Vdso();
  UniqueFd OpenPath(pid_t pid, const ProcMap& map) const;

  std::string proc_root_;
  std::vector<uint64_t> left_out_devices_;
  std::vector<FileId> left_out_files_;
  std::map<FileKey, std::shared_ptr<ElfFile>> files_;
  std::shared_ptr<ElfFile> vdso_;
};

struct LocatedAddress {
  const ProcMap* map = nullptr;          // nullptr if there is no mapping at the address
  std::shared_ptr<ElfFile> file;         // nullptr if there is no file, or it is unreadable
  uint64_t file_offset = 0;              // of the address, if there is a file
  std::optional<uint64_t> file_address;  // in the file's addresses
};

// The modules of one sample: converts an address in the process to a file and an address in it.
class SampleModules {
 public:
  // Both must outlive this object. `files`: nullptr if it opens none.
  SampleModules(const RawSample& sample, ModuleFiles* files) : sample_(sample), files_(files) {}

  LocatedAddress Locate(uint64_t address);
  // Opens no file. nullptr if there is no mapping at the address.
  const ProcMap* FindMapping(uint64_t address) const { return FindMap(sample_.maps, address); }

 private:
  std::shared_ptr<ElfFile> FindFile(const ProcMap& map);

  const RawSample& sample_;
  ModuleFiles* files_;
  // Keyed by device, inode and path.
  std::map<std::tuple<uint64_t, uint64_t, std::string>, std::shared_ptr<ElfFile>> opened_;
};

}  // namespace rollcall
