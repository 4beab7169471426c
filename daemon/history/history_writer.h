// SPDX-License-Identifier: Apache-2.0
// Writes what waits in the queue to the history, on one thread; tries again after a failure, and
// replaces a damaged or removed file. The other calls are for any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "daemon/history/history_file.h"
#include "daemon/history/write_queue.h"

namespace rollcall {

class HistoryWriter {
 public:
  // All of them must outlive the writer.
  HistoryWriter(const HistoryKeeperOptions& options, WriteQueue* queue, HistoryFile* file)
      : options_(options), queue_(queue), file_(file) {}

  // Returns once the queue has ended, and all of it is written or the last try has failed.
  void Run();

  // The outcome of the first attempt to open the file; nullopt if it has not ended by `deadline`.
  std::optional<absl::Status> AwaitFirstTry(SteadyTime deadline) const;
  // Returns the problem of the last attempt.
  absl::Status problem() const;
  uint64_t failed() const;  // attempts
  // True once after a new file replaced an old one.
  bool ConsumeRecreated();

 private:
  void Step();
  absl::Status WriteFirst();
  absl::Status TrimIfDue();
  void Note(const absl::Status& status, bool is_new_file);
  void SetProblem(const absl::Status& problem);

  const HistoryKeeperOptions& options_;
  WriteQueue* const queue_;
  HistoryFile* const file_;
  // Only the thread uses these.
  int64_t trimmed_ns_ = 0;
  int64_t next_try_ns_ = 0;
  int failures_ = 0;        // in a row
  bool is_logged_ = false;  // that the history cannot be written

  mutable Mutex mutex_;
  mutable Condition tried_;
  bool has_tried_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_recreated_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t failed_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status problem_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rollcall
