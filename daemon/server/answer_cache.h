// SPDX-License-Identifier: Apache-2.0
// Answers that many viewers ask for at once are made once.
//
// An answer is made anew when the version has changed, and not more often than every `least_ns`;
// as waits grow without a change, it is never older than `most_ns`. Thread-safe; while one thread
// makes an answer, the others that want the same wait for it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"

namespace rollcall {

// Immutable once made.
struct CachedAnswer {
  std::string json;
  std::string gzip;
  std::string etag;
};

class AnswerCache {
 public:
  using Answer = std::shared_ptr<const CachedAnswer>;

  AnswerCache(int64_t least_ns, int64_t most_ns) : least_ns_(least_ns), most_ns_(most_ns) {}

  absl::StatusOr<Answer> Get(const std::string& key, uint64_t version, int64_t now_ns,
                             const std::function<absl::StatusOr<std::string>()>& make);

 private:
  struct Entry {
    std::mutex mutex;
    Answer answer;
    uint64_t version = 0;
    int64_t made_ns = 0;
  };

  const int64_t least_ns_, most_ns_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Entry>> entries_;
};

}  // namespace rollcall
