// SPDX-License-Identifier: Apache-2.0
// Keeps --http-config up to date: looks each second whether web.yml or a file that it names has
// changed. The disk may block; no caller waits for it. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "base/worker.h"
#include "security/web_config_file.h"

namespace rollcall {

class HttpWebConfig {
 public:
  explicit HttpWebConfig(std::string path)
      : file_(std::make_shared<WebConfigFile>(std::move(path))) {}
  ~HttpWebConfig() { Stop(); }

  // Returns the error of the first reading. Later errors go to the log, and the last good state
  // stays.
  absl::Status Start();
  void Stop();
  // Never returns nullptr after Start().
  std::shared_ptr<const WebState> current() const { return file_->current(); }

 private:
  const std::shared_ptr<WebConfigFile> file_;  // shared with the thread while the disk blocks
  Worker worker_;
};

}  // namespace rollcall
