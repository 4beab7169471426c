// SPDX-License-Identifier: Apache-2.0
// One ELF file: the parts that unwinding needs (segments, build id, .eh_frame_hdr).
//
// Reads the file with pread() and never maps it, so that a file that is truncated during the read
// is a failed read and not a SIGBUS. The file is untrusted: the reader checks every size. Not
// thread-safe: all reads use one cache of pages.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/symbols/file_in_use.h"
#include "base/unique_fd.h"

namespace rollcall {

// The location of the sorted table from code addresses to unwind information. In the file's
// addresses.
struct UnwindTable {
  uint64_t header_address = 0;  // of .eh_frame_hdr; the table is relative to it
  uint64_t entries_address = 0;
  uint64_t entry_count = 0;
};

class ElfFile {
 public:
  // `name` is the name in messages and stacks.
  static absl::StatusOr<std::shared_ptr<ElfFile>> Open(UniqueFd fd, std::string name,
                                                       FileId id = {});

  FileId id() const { return id_; }
  const std::string& name() const { return name_; }
  // Returns the root of the file system of the file ("/proc/PID/root"); empty means the agent's
  // root.
  const std::string& root() const { return root_; }
  void set_root(std::string root) { root_ = std::move(root); }
  const std::string& build_id() const { return build_id_; }
  int fd() const { return fd_.get(); }
  const std::optional<UnwindTable>& unwind_table() const { return unwind_table_; }

  // Converts an offset in the file to the file's address. nullopt if the file does not load it.
  std::optional<uint64_t> AddressOfOffset(uint64_t offset) const;

  // Reads `size` bytes. False if the file is shorter.
  bool ReadOffset(uint64_t offset, void* data, size_t size);

 private:
  struct Segment {
    uint64_t offset = 0;
    uint64_t address = 0;
    uint64_t file_size = 0;
  };

  ElfFile(UniqueFd fd, std::string name, FileId id)
      : fd_(std::move(fd)), name_(std::move(name)), id_(id) {}
  absl::Status ReadHeaders();
  void ReadBuildId(const Segment& note);
  void ReadUnwindTable(const Segment& header);
  const std::vector<uint8_t>& Page(uint64_t index);

  UniqueFd fd_;
  std::string name_;
  const FileId id_;
  std::string root_;
  std::string build_id_;
  std::vector<Segment> loads_;
  std::optional<UnwindTable> unwind_table_;
  std::unordered_map<uint64_t, std::vector<uint8_t>> pages_;
};

}  // namespace rollcall
