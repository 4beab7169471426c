// SPDX-License-Identifier: Apache-2.0
// A file that is read again when it changes: certificates, keys, lists of tokens.
//
// Not thread-safe: one owner calls it. Errors name what failed; the caller adds what the file is
// for.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

struct stat;  // of <sys/stat.h>

namespace rollcall {

class WatchedFile {
 public:
  static constexpr size_t kMaxBytes = 1 << 20;

  explicit WatchedFile(std::string path);

  // The content, if the file has changed since the last call that returned content; nullopt if it
  // has not. Returns an error each time while the file cannot be read, is not a regular file, is
  // larger than kMaxBytes, or changes while it is read. Does not wait for a writer, as of a pipe.
  absl::StatusOr<std::optional<std::string>> ReadIfChanged();

  const std::string& path() const { return path_; }
  // Permission bits and owner of the file that the last content came from; 0 before.
  mode_t mode() const { return mode_; }
  uid_t owner() const { return owner_; }

 private:
  // What distinguishes two versions of a file.
  struct Version {
    dev_t device = 0;
    ino_t inode = 0;
    off_t size = 0;
    int64_t modified_ns = 0;
    int64_t changed_ns = 0;  // its content or its permissions

    bool operator==(const Version& other) const;
  };
  static Version VersionOf(const struct ::stat& facts);

  const std::string path_;
  std::optional<Version> version_;  // of the last content
  // A file that was written just now may be written once more within the same tick of the clock
  // that stamps files. Such a content is compared with the next.
  std::optional<size_t> young_hash_;
  mode_t mode_ = 0;
  uid_t owner_ = 0;
};

// The content of a file that is read once, by the rules of WatchedFile.
absl::StatusOr<std::string> ReadWatchedFile(const std::string& path);

}  // namespace rollcall
