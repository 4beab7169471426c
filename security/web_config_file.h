// SPDX-License-Identifier: Apache-2.0
// web.yml and the files that it names, read again when they change.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/watched_file.h"
#include "security/certificates/tls_context.h"
#include "security/passwords.h"
#include "security/web_config.h"

namespace rollcall {

// Immutable, except for what Passwords remembers.
struct WebState {
  std::shared_ptr<const TlsContext> tls;  // nullptr if the file does not configure TLS
  std::shared_ptr<Passwords> passwords;   // never nullptr
  std::vector<std::pair<std::string, std::string>> headers;
};

class WebConfigFile {
 public:
  explicit WebConfigFile(std::string path) : path_(std::move(path)) {}

  // Reads what has changed. `now_s` is the Unix time. After an error the last good state stays; an
  // error is returned as long as the files have it. One thread calls it.
  absl::Status Poll(int64_t now_s);
  // Thread-safe. nullptr before the first good Poll().
  std::shared_ptr<const WebState> current() const;

 private:
  struct Text {
    std::unique_ptr<WatchedFile> file;
    std::string content;
  };

  absl::StatusOr<std::string> ReadText(const std::string& path, bool* has_changed);
  absl::StatusOr<std::shared_ptr<const TlsContext>> MakeTls(const WebConfig& config, int64_t now_s,
                                                            bool* has_changed);
  absl::Status Apply(int64_t now_s);

  const std::string path_;
  std::map<std::string, Text> texts_;  // by path
  bool is_applied_ = false;            // the texts make up the current state
  mutable Mutex mutex_;
  std::shared_ptr<const WebState> current_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace rollcall
