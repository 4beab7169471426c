// SPDX-License-Identifier: Apache-2.0
// Keeps --http-config up to date: looks each second whether web.yml or a file that it names has
// changed. The disk may block; nobody waits for it. Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "base/loose_thread.h"
#include "base/mutex.h"
#include "security/web_config_file.h"

namespace rollcall {

class HttpWebConfig {
 public:
  explicit HttpWebConfig(std::string path);
  ~HttpWebConfig();  // stops

  // Returns the error of the first reading. Later errors go to the log, and the last good state
  // stays.
  absl::Status Start();
  void Stop();
  // Not nullptr after Start().
  std::shared_ptr<const WebState> current() const { return shared_->file.current(); }

 private:
  // Outlives this object while the disk blocks.
  struct Shared {
    explicit Shared(std::string path) : file(std::move(path)) {}

    WebConfigFile file;
    Mutex mutex;
    Condition wake;
    bool stopping ABSL_GUARDED_BY(mutex) = false;
  };
  static void Run(const std::shared_ptr<Shared>& shared);

  const std::shared_ptr<Shared> shared_;
  LooseThread thread_;
};

}  // namespace rollcall
