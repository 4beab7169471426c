// SPDX-License-Identifier: Apache-2.0
// An open segment file: what it is, whose it is, and its bytes. The readers of segments read
// through it.
//
// An untrusted process writes the file. It is read and never mapped, so that a file that is
// truncated during the read is a short read and not a SIGBUS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/segments/segment_owner.h"
#include "agent/segments/word_copies.h"
#include "base/unique_fd.h"
#include "interpose/segment.h"

namespace rollcall {

class SegmentFile {
 public:
  // Errors: kNotFound, kInvalidArgument (not a segment, or another layout version, which the
  // message names), kDataLoss (truncated), kFailedPrecondition (incomplete: the process is creating
  // it, or ended before it was complete), kUnavailable (cannot be opened now).
  static absl::StatusOr<SegmentFile> Open(const std::string& path);
  // Takes an open file. Messages call the file `path`.
  static absl::StatusOr<SegmentFile> FromDescriptor(const std::string& path, UniqueFd fd);
  // Returns another descriptor of the same file. Errors as for Open().
  absl::StatusOr<SegmentFile> Again() const;

  const std::string& path() const { return path_; }
  uint64_t device() const { return device_; }
  uint64_t inode() const { return inode_; }
  uint32_t user() const { return user_; }  // who owns the file
  bool Is(uint64_t device, uint64_t inode) const { return device == device_ && inode == inode_; }

  // Whether the file has been unlinked. A file with this name now is another file.
  bool Deleted() const;

  // Whether a read may block without limit: the file is on a network or FUSE file system.
  bool MayBlock() const { return may_block_; }

  HeldLock Lock() const { return QueryLock(fd_.get()); }

  // The owner by the header, and the state of the life lock. Errors as for Open().
  absl::StatusOr<SegmentClaim> Claim() const;

  // False: the file is shorter, or the read failed.
  bool ReadAt(uint64_t offset, void* out, size_t size) const;
  template <typename T>
  bool ReadAt(uint64_t offset, Copy<T>* out) const {
    return ReadAt(offset, out->bytes, sizeof(out->bytes));
  }

  // Copies the header, if it is that of a complete segment. Errors as for Open().
  absl::Status ReadHeader(Copy<segment::SegmentHeader>* header) const;

 private:
  SegmentFile(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  UniqueFd fd_;
  uint64_t device_ = 0, inode_ = 0;
  uint32_t user_ = 0;
  bool may_block_ = false;
};

// Whether the name is that of a segment file: "<pid>-<start time>.seg", or
// "<pid>-<start time>-<n>.seg" if a process of another pid namespace already uses the first name.
bool IsSegmentName(const std::string& name);

}  // namespace rollcall
