// SPDX-License-Identifier: Apache-2.0
// Computes once an answer that many viewers request at the same time.
//
// Recomputes an answer when the version has changed, but at most every `least_ns`. An answer is
// never older than `most_ns`, because waits grow without a change of version. Thread-safe: while
// one thread computes an answer, other threads that need the same answer wait for it. Keeps the
// answers that were requested last, up to a number of bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/mutex.h"

namespace rollcall {

// Immutable after creation.
struct CachedAnswer {
  std::string json;
  std::string gzip;
  std::string etag;
};

class AnswerCache {
 public:
  using Answer = std::shared_ptr<const CachedAnswer>;

  // For the answers that several viewers request at once; an answer of the largest job has 10 MB.
  static constexpr size_t kMostBytes = size_t{64} << 20;

  AnswerCache(int64_t least_ns, int64_t most_ns, size_t most_bytes = kMostBytes)
      : least_ns_(least_ns), most_ns_(most_ns), most_bytes_(most_bytes) {}

  absl::StatusOr<Answer> Get(const std::string& key, uint64_t version, int64_t now_ns,
                             const std::function<absl::StatusOr<std::string>()>& make);

  // Total bytes of answers and keys.
  size_t bytes() const;

 private:
  struct Entry {
    Mutex mutex;  // taken before the cache's
    Answer answer ABSL_GUARDED_BY(mutex);
    uint64_t version ABSL_GUARDED_BY(mutex) = 0;
    int64_t made_ns ABSL_GUARDED_BY(mutex) = 0;
    size_t bytes = 0;   // these two are guarded by the cache's mutex
    uint64_t used = 0;  // number of the last request
  };
  using EntryPtr = std::shared_ptr<Entry>;

  EntryPtr FindOrAdd(const std::string& key);
  void SetBytes(const std::string& key, const EntryPtr& entry, size_t bytes);
  void Erase(std::map<std::string, EntryPtr>::iterator at) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int64_t least_ns_, most_ns_;
  const size_t most_bytes_;
  mutable Mutex mutex_;
  std::map<std::string, EntryPtr> entries_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t requests_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace rollcall
