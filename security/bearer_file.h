// SPDX-License-Identifier: Apache-2.0
// The token of a client, in a file of its own. Kubernetes and others replace the file while the
// client runs. Thread-safe.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/watched_file.h"

namespace rollcall {

class BearerFile {
 public:
  // gRPC's limit for all metadata of a call is 8 KiB.
  static constexpr size_t kMaxTokenBytes = 6144;

  explicit BearerFile(std::string path);

  // The token that the file holds now, without white space around it. While the file is unusable,
  // the last token; if there was none, an error with the reason. A file that others may read is
  // unusable (secret_file.h).
  absl::StatusOr<std::string> Read();

 private:
  Mutex mutex_;
  WatchedFile file_ ABSL_GUARDED_BY(mutex_);
  std::string token_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);  // of the last content
};

}  // namespace rollcall
